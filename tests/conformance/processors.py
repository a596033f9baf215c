"""The named processors of FORMAT.md, section 8, written once for ``Processor`` and ``FixedKeyProcessor``.

A behaviour is a function of the running processor and the record; the ones with punctuators also have a
start. The store that a behaviour works on is looked up by name in the processor's context.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.conformance import functions, stores
from tests.conformance.api import public
from tests.conformance.errors import FormatError, ThrownError
from tests.conformance.values import Json, text, windowed

CallLog: TypeAlias = Callable[[str, Any, Any], None]  # (step id, key, value)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the processors of a case share: which stores keep timestamps, and where calls are recorded."""

    timestamped: frozenset[str]
    call: CallLog


@dataclass(slots=True)
class Running:
    """A processor inside a task, as a behaviour sees it."""

    context: Any
    fixed_key: bool
    setting: Setting

    def forward(self, record: Any, child: str | None = None) -> None:
        """Hands a record on, to one child or to all."""
        if child is None:
            self.context.forward(record)
        else:
            self.context.forward(record, child)

    def store(self, name: str) -> Any:
        """Gives a connected store."""
        return self.context.get_state_store(name)

    def put(self, name: str, key: Any, value: Any, timestamp: int) -> None:
        """Writes to a key-value store, with the timestamp if the store keeps one."""
        self.store(name).put(key, self.entry(name, value, timestamp))

    def entry(self, name: str, value: Any, timestamp: int) -> Any:
        """Gives the value as the store wants it."""
        if name not in self.setting.timestamped or value is None:
            return value
        return public("ValueAndTimestamp", "pykstreams.state")(value, timestamp)


OnRecord: TypeAlias = Callable[[Running, Any], None]
OnStart: TypeAlias = Callable[[Running], None]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a processor does at its start and with each record."""

    on_record: OnRecord
    on_start: OnStart | None = None


def show(entry: Any) -> str:
    """``show(x)``: entry of a timestamped or versioned store, or a plain value."""
    if hasattr(entry, "valid_to"):
        until = "open" if entry.valid_to is None else entry.valid_to
        return f"{text(entry.value)}@{entry.timestamp}/{until}"
    if hasattr(entry, "value") and hasattr(entry, "timestamp"):
        return f"{text(entry.value)}@{entry.timestamp}"
    return text(entry)


def _show_or_none(entry: Any) -> str | None:
    return None if entry is None else show(entry)


def plain(entry: Any) -> Any:
    """The value inside an entry of a plain or timestamped store."""
    return entry.value if hasattr(entry, "value") and hasattr(entry, "timestamp") else entry


def behaviour(spec: Json, step_id: str) -> Behaviour:
    """Makes the behaviour that a ``processor`` object names."""
    name = spec["name"]
    simple = _simple(spec, step_id)
    if name in simple:
        return Behaviour(simple[name])
    if name == "buffer":
        return Behaviour(lambda p, r: p.put(spec["store"], r.key, r.value, r.timestamp), _buffer_start(spec))
    if name == "tick":
        return Behaviour(lambda p, r: p.forward(r), _tick_start(spec))
    makers = {"map": _map, "forward_to": _forward_to, "throw_if": _throw_if, "kv_get": _kv_get}
    if name in makers:
        return Behaviour(makers[name](spec))
    if name == "versioned_get":
        return Behaviour(_versioned_get(spec))
    raise FormatError(f"unknown processor {name!r}")


# ---------------------------------------------------------------- without parameters that need parsing


def _simple(spec: Json, step_id: str) -> dict[str, OnRecord]:
    store = spec.get("store")

    def repeat(p: Running, r: Any) -> None:
        for _ in range(spec["times"]):
            p.forward(r)

    def record_call(p: Running, r: Any) -> None:
        p.setting.call(step_id, r.key, r.value)
        p.forward(r)

    def header_add(p: Running, r: Any) -> None:
        value = None if spec["value"] is None else spec["value"].encode()
        p.forward(r.replace(headers=(*r.headers, (spec["header"], value))))

    def header_remove(p: Running, r: Any) -> None:
        p.forward(r.replace(headers=tuple(h for h in r.headers if h[0] != spec["header"])))

    def header_to_value(p: Running, r: Any) -> None:
        found = [value for key, value in r.headers if key == spec["header"]]
        p.forward(r.replace(value=found[-1].decode() if found else None))

    def set_timestamp(p: Running, r: Any) -> None:
        p.forward(r.replace(timestamp=spec["to"] if "to" in spec else r.timestamp + spec["delta"]))

    def metadata_to_value(p: Running, r: Any) -> None:
        m = p.context.record_metadata
        where = "none" if m is None else f"{text(m.topic)}|{m.partition}|{m.offset}"
        p.forward(r.replace(value=f"{text(r.value)}|{where}"))

    def times_to_value(p: Running, r: Any) -> None:
        stream, system = p.context.current_stream_time_ms(), p.context.current_system_time_ms()
        p.forward(r.replace(value=f"{text(r.value)}|{stream}|{system}"))

    def kv_count(p: Running, r: Any) -> None:
        n = functions.num(plain(p.store(store).get(r.key))) + 1
        p.put(store, r.key, n, r.timestamp)
        p.forward(r.replace(value=n))

    def kv_put(p: Running, r: Any) -> None:
        forward = spec.get("forward", "new")
        old = p.store(store).get(r.key) if forward == "old" else None
        p.put(store, r.key, r.value, r.timestamp)
        if forward == "new":
            p.forward(r)
        elif forward == "old":
            p.forward(r.replace(value=_show_or_none(old)))

    def kv_put_if_absent(p: Running, r: Any) -> None:
        old = p.store(store).put_if_absent(r.key, p.entry(store, r.value, r.timestamp))
        p.forward(r.replace(value=_show_or_none(old)))

    def kv_delete(p: Running, r: Any) -> None:
        p.forward(r.replace(value=_show_or_none(p.store(store).delete(r.key))))

    def kv_scan(p: Running, r: Any) -> None:
        how, kv = spec.get("scan", "all"), p.store(store)
        backward = how.startswith("reverse_")
        found = (
            kv.all(reverse=backward)
            if how in ("all", "reverse_all")
            else kv.range(spec["from"], spec["to"], reverse=backward)
        )
        with found as rows:
            p.forward(r.replace(value=",".join(f"{text(key)}={show(value)}" for key, value in rows)))

    def dedup(p: Running, r: Any) -> None:
        if p.store(store).get(r.key) is None:
            p.put(store, r.key, r.value, r.timestamp)
            p.forward(r)

    def versioned_put(p: Running, r: Any) -> None:
        p.forward(r.replace(value=p.store(store).put(r.key, r.value, r.timestamp)))

    def versioned_delete(p: Running, r: Any) -> None:
        p.forward(r.replace(value=_show_or_none(p.store(store).delete(r.key, r.timestamp))))

    def window_put(p: Running, r: Any) -> None:
        p.store(store).put(r.key, p.entry(store, r.value, r.timestamp), r.timestamp)
        p.forward(r)

    def window_fetch(p: Running, r: Any) -> None:
        lower, upper = r.timestamp - spec["before_ms"], r.timestamp + spec["after_ms"]
        backward = bool(spec.get("backward", False))
        with p.store(store).fetch(r.key, lower, upper, reverse=backward) as rows:
            p.forward(r.replace(value=",".join(f"{show(value)}#{start}" for start, value in rows)))

    def session_put(p: Running, r: Any) -> None:
        start, end, value = (functions.part(r.value, i, "|") for i in range(3))
        session = windowed(r.key, functions.num(start), functions.num(end))
        if value:
            p.store(store).put(session, value)
        else:
            p.store(store).remove(session)
        p.forward(r)

    def session_find(p: Running, r: Any) -> None:
        lower, upper = r.timestamp - spec["before_ms"], r.timestamp + spec["after_ms"]
        backward = bool(spec.get("backward", False))
        with p.store(store).find_sessions(r.key, lower, upper, reverse=backward) as rows:
            p.forward(r.replace(value=",".join(f"{text(key)}={show(value)}" for key, value in rows)))

    return {
        "forward": lambda p, r: p.forward(r),
        "drop": lambda p, r: None,
        "repeat": repeat,
        "record_call": record_call,
        "header_add": header_add,
        "header_remove": header_remove,
        "header_to_value": header_to_value,
        "set_timestamp": set_timestamp,
        "metadata_to_value": metadata_to_value,
        "times_to_value": times_to_value,
        "kv_count": kv_count,
        "kv_put": kv_put,
        "kv_put_if_absent": kv_put_if_absent,
        "kv_delete": kv_delete,
        "kv_scan": kv_scan,
        "dedup": dedup,
        "versioned_put": versioned_put,
        "versioned_delete": versioned_delete,
        "window_put": window_put,
        "window_fetch": window_fetch,
        "session_put": session_put,
        "session_find": session_find,
    }


# ---------------------------------------------------------------- with selectors and predicates


def _map(spec: Json) -> OnRecord:
    key = functions.selector(spec["key"]) if "key" in spec else None
    value = functions.selector(spec["value"]) if "value" in spec else None

    def on_record(p: Running, r: Any) -> None:
        changes = {} if key is None or p.fixed_key else {"key": key(r.key, r.value)}
        if value is not None:
            changes["value"] = value(r.key, r.value)
        p.forward(r.replace(**changes))

    return on_record


def _forward_to(spec: Json) -> OnRecord:
    when = functions.predicate(spec["when"]) if "when" in spec else lambda key, value: True

    def on_record(p: Running, r: Any) -> None:
        if when(r.key, r.value):
            p.forward(r, spec["child"])
        elif "else" in spec:
            p.forward(r, spec["else"])

    return on_record


def _throw_if(spec: Json) -> OnRecord:
    when = functions.predicate(spec["when"])

    def on_record(p: Running, r: Any) -> None:
        if when(r.key, r.value):
            raise ThrownError(spec["message"])
        p.forward(r)

    return on_record


def _kv_get(spec: Json) -> OnRecord:
    select = functions.selector(spec["key"]) if "key" in spec else lambda key, value: key

    def on_record(p: Running, r: Any) -> None:
        p.forward(r.replace(value=_show_or_none(p.store(spec["store"]).get(select(r.key, r.value)))))

    return on_record


def _versioned_get(spec: Json) -> OnRecord:
    as_of = functions.selector(spec["as_of"]) if "as_of" in spec else None

    def on_record(p: Running, r: Any) -> None:
        when = [] if as_of is None else [functions.num(as_of(r.key, r.value))]
        p.forward(r.replace(value=_show_or_none(p.store(spec["store"]).get(r.key, *when))))

    return on_record


# ---------------------------------------------------------------- with punctuators


def _punctuation(spec: Json) -> Any:
    return getattr(public("PunctuationType"), spec["type"].upper())


def _buffer_start(spec: Json) -> OnStart:
    def on_start(p: Running) -> None:
        def punctuate(time: int) -> None:
            kv = p.store(spec["store"])
            with kv.all() as rows:
                entries = list(rows)
            for key, entry in entries:
                if not p.fixed_key:
                    p.forward(public("Record")(key, plain(entry), time))
                kv.delete(key)

        p.context.schedule(spec["interval_ms"], _punctuation(spec), punctuate)

    return on_start


def _tick_start(spec: Json) -> OnStart:
    def on_start(p: Running) -> None:
        fired = 0

        def punctuate(time: int) -> None:
            nonlocal fired
            if not p.fixed_key:
                p.forward(public("Record")("tick", str(time), time))
            fired += 1
            if "cancel_after" in spec and fired >= spec["cancel_after"]:
                schedule.cancel()

        start = {"start_time": spec["start_ms"]} if "start_ms" in spec else {}
        schedule = p.context.schedule(spec["interval_ms"], _punctuation(spec), punctuate, **start)

    return on_start


# ---------------------------------------------------------------- suppliers


class Supplier:
    """A supplier of new processors; ``stores()`` are those it brings itself."""

    def __init__(self, make: Callable[[], Any], provided: Json) -> None:
        self._make = make
        self._provided = provided or ()

    def __call__(self) -> Any:
        return self._make()

    def stores(self) -> tuple[Any, ...]:
        """Gives the builders of the stores that come with the processor."""
        return tuple(stores.builder(spec) for spec in self._provided)


def supplier(spec: Json, step_id: str, setting: Setting, *, fixed_key: bool = False) -> Supplier:
    """Gives the supplier for ``process`` and the low-level calls, or for ``process_values``."""
    behaviour(spec, step_id)
    base = public("FixedKeyProcessor" if fixed_key else "Processor")

    class CaseProcessor(base):  # type: ignore[misc,valid-type]
        """A named processor of a case."""

        def init(self, context: Any) -> None:
            self._running = Running(context, fixed_key, setting)
            self._behaviour = behaviour(spec, step_id)
            if self._behaviour.on_start is not None:
                self._behaviour.on_start(self._running)

        def process(self, record: Any) -> None:
            self._behaviour.on_record(self._running, record)

    return Supplier(CaseProcessor, spec.get("provide_stores"))


def transformer(spec: Json, setting: Setting) -> Supplier:
    """Gives the supplier for ``transform_values``."""
    name = spec["name"]
    if name not in ("map", "kv_count", "kv_get", "context_to_value"):
        raise FormatError(f"unknown value transformer {name!r}")
    select = functions.selector(spec["value"]) if name == "map" else None

    class CaseTransformer(public("ValueTransformerWithKey")):  # type: ignore[misc]
        """A named transformer of a case."""

        def init(self, context: Any) -> None:
            self._running = Running(context, True, setting)

        def transform(self, key: Any, value: Any) -> Any:
            context = self._running.context
            if select is not None:
                return select(key, value)
            if name == "context_to_value":
                m = context.record_metadata
                return f"{text(value)}|{text(m.topic)}|{m.partition}|{m.offset}|{context.timestamp}"
            entry = self._running.store(spec["store"]).get(key)
            if name == "kv_get":
                return _show_or_none(entry)
            n = functions.num(plain(entry)) + 1
            timestamped = spec["store"] in setting.timestamped
            self._running.put(spec["store"], key, n, context.timestamp if timestamped else 0)
            return n

        def close(self) -> None:
            pass

    return Supplier(CaseTransformer, spec.get("provide_stores"))
