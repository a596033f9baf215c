"""The store queries of FORMAT.md, section 9, and the rows of their results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pykstreams.state.encoding.layout import pack_headers
from tests.conformance.api import public
from tests.conformance.errors import FormatError
from tests.conformance.serdes import serde
from tests.conformance.values import LONG_MAX, Json, decode, encode

Row = dict[str, Json]


def store_type(store: Any) -> str:
    """Tells ``key-value``, ``window``, ``session`` or ``versioned`` by what the store can do."""
    if hasattr(store, "find_sessions"):
        return "session"
    if hasattr(store, "fetch_one"):
        return "window"
    if hasattr(store, "put_if_absent") or hasattr(store, "approximate_num_entries"):
        return "key-value"
    return "versioned"


def query(store: Any, spec: Json) -> Json:
    """Gives the ``result`` of a query: null, a number, one row or a list of rows."""
    op: str = spec["op"]
    base = op.removeprefix("backward_").removeprefix("reverse_")
    backward = base != op
    match store_type(store):
        case "versioned":
            return _versioned(store, base, spec)
        case "window":
            return _window(store, base, spec, backward)
        case "session":
            return _session(store, base, spec, backward)
    return _key_value(store, base, spec, backward)


def _key_value(store: Any, op: str, spec: Json, backward: bool) -> Json:
    match op:
        case "get":
            return _one(store.get(decode(spec.get("key"))))
        case "all":
            return _keyed(store.all(reverse=backward))
        case "range":
            bounds = decode(spec.get("from")), decode(spec.get("to"))
            return _keyed(store.range(*bounds, reverse=backward))
        case "prefix_scan":
            return _keyed(store.prefix_scan(spec["prefix"], serde("string").serializer))
        case "approximate_num_entries":
            return store.approximate_num_entries()
    raise _unknown(spec)


def _window(store: Any, op: str, spec: Json, backward: bool) -> Json:
    times = spec.get("time_from", 0), spec.get("time_to", LONG_MAX)
    match op:
        case "fetch":
            return _one(store.fetch_one(decode(spec["key"]), spec["time"]))
        case "fetch_range":
            with store.fetch(decode(spec["key"]), *times, reverse=backward) as rows:
                return [{"start": start, **_value(value)} for start, value in rows]
        case "fetch_keys":
            keys = decode(spec.get("from")), decode(spec.get("to"))
            return _keyed(store.fetch_range(*keys, *times, reverse=backward))
        case "fetch_all":
            return _keyed(store.fetch_all(*times, reverse=backward))
        case "all":
            return _keyed(store.all(reverse=backward))
    raise _unknown(spec)


def _session(store: Any, op: str, spec: Json, backward: bool) -> Json:
    keys = decode(spec.get("from")), decode(spec.get("to"))
    match op:
        case "fetch":
            return _keyed(store.fetch(decode(spec["key"]), reverse=backward))
        case "fetch_keys":
            return _keyed(store.fetch_range(*keys, reverse=backward))
        case "fetch_session":
            return _one(store.fetch_session(decode(spec["key"]), spec["start"], spec["end"]))
        case "find_sessions":
            times = spec["earliest_end"], spec["latest_start"]
            if "key" in spec:
                return _keyed(store.find_sessions(decode(spec["key"]), *times, reverse=backward))
            return _keyed(store.find_sessions_range(*keys, *times, reverse=backward))
    raise _unknown(spec)


def _versioned(store: Any, op: str, spec: Json) -> Json:
    key = decode(spec.get("key"))
    if op == "get":
        return _one(store.get(key, *([spec["as_of"]] if "as_of" in spec else [])))
    if op != "history":
        raise _unknown(spec)
    orders = public("ResultOrder", "pykstreams.state")
    order = orders.ASCENDING if spec.get("ascending") else orders.DESCENDING
    with store.get(key, spec.get("time_from"), spec.get("time_to"), order) as versions:
        return [_value(version) for version in versions]


def _unknown(spec: Json) -> FormatError:
    return FormatError(f"query op {spec['op']!r} does not fit the store {spec['store']!r}")


def _one(entry: Any) -> Json:
    return None if entry is None else _value(entry)


def _keyed(found: Any) -> list[Row]:
    with found as rows:
        return [{"key": encode(key), **_value(value)} for key, value in rows]


def _value(entry: Any) -> Row:
    """One row without its key: ``value``, and ``ts``, ``headers``, ``valid_to`` where the store has them."""
    if hasattr(entry, "valid_to"):
        return {"value": encode(entry.value), "ts": entry.timestamp, "valid_to": entry.valid_to}
    if hasattr(entry, "aggregation"):
        return {"value": encode(entry.aggregation), "headers": headers(entry.headers)}
    if hasattr(entry, "value") and hasattr(entry, "timestamp"):
        row = {"value": encode(entry.value), "ts": entry.timestamp}
        return {**row, "headers": headers(entry.headers)} if hasattr(entry, "headers") else row
    return {"value": encode(entry)}


def headers(pairs: Iterable[tuple[str, bytes | None]]) -> list[list[str | None]]:
    """Headers as in a case: ``[[name, hex or null]]``."""
    return [[name, None if value is None else bytes(value).hex()] for name, value in pairs]


def dump(store: Any, raw_rows: Iterable[Any]) -> list[Row]:
    """The rows of a store at the end of a case, in the order of section 10.

    Rows of key-value stores are tuples ``(key, value, timestamp or None, headers)``, those of the other kinds have
    their fields as attributes.
    """
    kind = store_type(store)
    make = _raw_pair if kind == "key-value" else _raw_version if kind == "versioned" else _raw_window
    return sorted(map(make, raw_rows), key=lambda row: (row["key"], row.get("start", 0), row.get("end", 0)))


def _raw_pair(raw: Any) -> Row:
    key, value, timestamp, headers = raw
    row = {"key": key.hex(), "value": value.hex()}
    if headers:
        row["headers_bytes"] = pack_headers(headers).hex()
    return row if timestamp is None else row | {"ts": timestamp}


def _raw_window(raw: Any) -> Row:
    """A row of a window or session store; only sessions have an end of their own.

    Headers, which only stores of joins in memory and stores in the format ``HEADERS`` keep, are shown as they are
    packed in the row (``headers_bytes``).
    """
    row = {"key": raw.key.hex(), "start": raw.start}
    if getattr(raw, "end", None) is not None:
        row["end"] = raw.end
    row["value"] = raw.value.hex()
    if getattr(raw, "headers", ()):
        row["headers_bytes"] = pack_headers(raw.headers).hex()
    return row if getattr(raw, "timestamp", None) is None else row | {"ts": raw.timestamp}


def _raw_version(raw: Any) -> Row:
    return {"key": raw.key.hex(), "value": raw.value.hex(), "ts": raw.timestamp, "valid_to": raw.valid_to}
