"""Builds the topology of a case (FORMAT.md, section 5) with pykstreams' DSL and its low-level ``Topology``.

A parameter that a step does not have is not passed on, since it selects the overload without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.conformance import functions, options, processors, stores
from tests.conformance.api import operation, public
from tests.conformance.errors import FormatError
from tests.conformance.serdes import optional_serde
from tests.conformance.values import Json

Step = dict[str, Json]


class TopologyFactory:
    """Runs the steps of a case's ``topology`` in order; ``finish`` gives the topology.

    The first low-level step builds the DSL part with the configuration; later steps go to that ``Topology``.
    """

    def __init__(self, case: Json, config: dict[str, Any], call: processors.CallLog) -> None:
        self.split_keys: dict[str, list[str]] = {}
        self._config = config
        self._call = call
        self._setting = processors.Setting(stores.timestamped_stores(case), call)
        self._builder = public("StreamsBuilder")(config)
        self._topology: Any = None
        self._ids: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        for step in case["topology"]:
            self._run(step)

    def finish(self) -> Any:
        """Gives the topology; builds the DSL part when that has not been done."""
        if self._topology is None:
            self._topology = operation(self._builder, "build")(self._config)
        return self._topology

    def _run(self, step: Step) -> None:
        op = step["op"]
        method: Callable[[Step], Any] | None = getattr(self, f"_op_{op}", None)
        if method is None:
            raise FormatError(f"unknown op {op!r}")
        self._ids[step["id"]] = method(step)

    def _ref(self, identifier: str) -> Any:
        found = self._ids.get(identifier)
        if found is None:
            raise FormatError(f"no result of a step with id {identifier!r}")
        return found

    def _on(self, step: Step, name: str | None = None) -> Any:
        """Gives the operation of the object that the step works on."""
        return operation(self._ref(step["on"]), name or step["op"])

    # ------------------------------------------------------------ sources

    def _op_stream(self, step: Step) -> Any:
        if "pattern" in step:
            topics: Any = re.compile(step["pattern"])
        else:
            topics = step.get("topics", step.get("topic"))
        return operation(self._builder, "stream")(topics, *_consumed(step))

    def _op_table(self, step: Step) -> Any:
        return operation(self._builder, step["op"])(step["topic"], *_consumed(step), **_materialized(step))

    _op_global_table = _op_table

    # ------------------------------------------------------------ stateless

    def _op_filter(self, step: Step) -> Any:
        return self._on(step)(functions.predicate(step["fn"]), **_named(step), **_materialized(step))

    _op_filter_not = _op_filter

    def _op_map(self, step: Step) -> Any:
        return self._on(step)(_pair(step), **_named(step))

    def _op_map_values(self, step: Step) -> Any:
        select = functions.selector(step["fn"])
        return self._on(step)(*_with_key(step, select), **_key_flag(step), **_named(step), **_materialized(step))

    def _op_flat_map(self, step: Step) -> Any:
        return self._on(step)(functions.flat_pairs(step["fn"]), **_named(step))

    def _op_flat_map_values(self, step: Step) -> Any:
        return self._on(step)(*_with_key(step, functions.flat_values(step["fn"])), **_key_flag(step), **_named(step))

    def _op_select_key(self, step: Step) -> Any:
        return self._on(step)(functions.selector(step["fn"]), **_named(step))

    def _op_peek(self, step: Step) -> Any:
        guard = functions.predicate(step["fn"]) if "fn" in step else None
        identifier, call = step["id"], self._call

        def action(key: Any, value: Any) -> None:
            if guard is not None:
                guard(key, value)
            call(identifier, key, value)

        return self._on(step)(action, **_named(step))

    _op_foreach = _op_peek

    def _op_split(self, step: Step) -> Any:
        branched = self._on(step)(**_named(step))
        found: dict[str, Any] = {}
        for branch in step["branches"]:
            test = functions.predicate(branch["fn"])
            options_of = [] if branch.get("plain") else [_branched(branch, found)]
            branched = operation(branched, "branch")(test, *options_of)
        default = step.get("default")
        if default is None:
            result = operation(branched, "no_default_branch")()
        elif isinstance(default, dict):
            result = operation(branched, "default_branch")(_branched(default, found))
        else:
            result = operation(branched, "default_branch")()
        self._ids.update(found)
        self.split_keys[step["id"]] = sorted(result)
        return result

    def _op_branch_of(self, step: Step) -> Any:
        branches = self._ref(step["on"])
        if step["key"] not in branches:
            raise FormatError(f"no branch {step['key']!r} in {sorted(branches)}")
        return branches[step["key"]]

    def _op_merge(self, step: Step) -> Any:
        return self._on(step)(self._ref(step["with"]), **_named(step))

    def _op_repartition(self, step: Step) -> Any:
        return self._on(step)(*_option(step, "repartitioned", options.repartitioned))

    def _op_to(self, step: Step) -> Any:
        topic = functions.TopicExtractor(step["topic_fn"]) if "topic_fn" in step else step["topic"]
        return self._on(step)(topic, *_option(step, "produced", options.produced))

    def _op_to_table(self, step: Step) -> Any:
        return self._on(step)(**_named(step), **_materialized(step))

    def _op_to_stream(self, step: Step) -> Any:
        mapper = [functions.selector(step["fn"])] if "fn" in step else []
        return self._on(step)(*mapper, **_named(step))

    def _op_process(self, step: Step) -> Any:
        fixed_key = step["op"] == "process_values"
        supplier = processors.supplier(step["processor"], step["id"], self._setting, fixed_key=fixed_key)
        return self._on(step)(supplier, *step.get("stores", ()), **_named(step))

    _op_process_values = _op_process

    def _op_transform_values(self, step: Step) -> Any:
        supplier = processors.transformer(step["transformer"], self._setting)
        return self._on(step)(supplier, *step.get("stores", ()), **_named(step), **_materialized(step))

    # ------------------------------------------------------------ grouping, windows, aggregations

    def _op_group_by_key(self, step: Step) -> Any:
        self._kinds[step["id"]] = "grouped stream"
        return self._on(step)(*_option(step, "grouped", options.grouped))

    def _op_group_by(self, step: Step) -> Any:
        self._kinds[step["id"]] = "grouped stream" if "fn" in step else "grouped table"
        select = functions.selector(step["fn"]) if "fn" in step else _pair(step)
        return self._on(step)(select, *_option(step, "grouped", options.grouped))

    def _op_windowed_by(self, step: Step) -> Any:
        return self._on(step)(options.windows(step["windows"]))

    def _op_emit_strategy(self, step: Step) -> Any:
        return self._on(step)(options.emit_strategy(step["strategy"]))

    def _op_cogroup(self, step: Step) -> Any:
        self._kinds[step["id"]] = "cogrouped"
        other = [self._ref(step["with"])] if "with" in step else []
        return self._on(step)(*other, functions.aggregator(step["aggregator"]))

    def _op_count(self, step: Step) -> Any:
        return self._on(step)(**_named(step), **_materialized(step))

    def _op_reduce(self, step: Step) -> Any:
        kind = self._kinds.get(step["on"], "")
        fields = ["adder", "subtractor"] if kind == "grouped table" else ["reducer"]
        reducers = [functions.reducer(step[field]) for field in fields]
        named = _named(step) if "materialized" in step or not kind.startswith("grouped") else {}
        return self._on(step)(*reducers, **named, **_materialized(step))

    def _op_aggregate(self, step: Step) -> Any:
        kind = self._kinds.get(step["on"], "")
        arguments: list[Any] = [functions.initializer(step["initializer"])]
        if kind == "grouped table":
            arguments += [functions.aggregator(step[field]) for field in ("adder", "subtractor")]
        else:
            if "aggregator" in step:
                arguments.append(functions.aggregator(step["aggregator"]))
            if "merger" in step:
                arguments.append(functions.merger(step["merger"]))
        named = _named(step) if "materialized" in step or kind != "grouped stream" else {}
        return self._on(step)(*arguments, **named, **_materialized(step))

    def _op_suppress(self, step: Step) -> Any:
        return self._on(step)(options.suppressed(step))

    # ------------------------------------------------------------ joins

    def _op_join(self, step: Step) -> Any:
        join, other = self._on(step), self._ref(step["with"])
        joiner = functions.joiner(step["joiner"])
        without_key = _WithoutKey(joiner)
        keywords: dict[str, Any] = {}
        if "fk" in step:
            select = functions.selector(step["fk"])
            with_key = bool(step.get("fk_with_key", False))
            keywords["foreign_key_extractor"] = select if with_key else _value_only(select)
            if with_key:
                keywords["extractor_with_key"] = True
            if "table_joined" in step:
                keywords["table_joined"] = options.table_joined(step["table_joined"])
            return join(other, without_key, **keywords, **_materialized(step))
        if "windows" in step:
            keywords["windows"] = options.join_windows(step["windows"])
            if "stream_joined" in step:
                keywords["stream_joined"] = options.stream_joined(step["stream_joined"])
        elif "key_selector" in step:
            keywords["key_selector"] = functions.selector(step["key_selector"])
            keywords |= _named(step)
        elif isinstance(self._ref(step["on"]), public("KTable")):
            return join(other, without_key, **_named(step), **_materialized(step))
        elif "joined" in step:
            keywords["joined"] = options.joined(step["joined"])
        if step.get("joiner_with_key"):
            return join(other, joiner, with_key=True, **keywords)
        return join(other, without_key, **keywords)

    _op_left_join = _op_join
    _op_outer_join = _op_join

    # ------------------------------------------------------------ stores and low-level topology

    def _op_add_state_store(self, step: Step) -> None:
        store = stores.builder(step["store"])
        if self._topology is not None or "processors" in step:
            operation(self.finish(), "add_state_store")(store, *step.get("processors", ()))
        else:
            operation(self._builder, "add_state_store")(store)

    def _op_add_global_store(self, step: Step) -> None:
        store = stores.builder(step["store"])
        supplier = processors.supplier(step["processor"], step["id"], self._setting)
        if "source_name" not in step:
            add = operation(self._builder, "add_global_store")
            add(store, step["topic"], supplier, *_consumed(step))
            return
        self._add_low_level_store(step, store, supplier, extractor=True)

    def _op_add_read_only_state_store(self, step: Step) -> None:
        supplier = processors.supplier(step["processor"], step["id"], self._setting)
        self._add_low_level_store(step, stores.builder(step["store"]), supplier, extractor=False)

    def _add_low_level_store(self, step: Step, store: Any, supplier: Any, *, extractor: bool) -> None:
        consumed = step.get("consumed", {})
        keywords = _deserializers(consumed)
        if extractor and "timestamp_extractor" in consumed:
            keywords["timestamp_extractor"] = functions.timestamp_extractor(consumed["timestamp_extractor"])
        add = operation(self.finish(), step["op"])
        add(store, step["source_name"], step["topic"], step["processor_name"], supplier, **keywords)

    def _op_add_source(self, step: Step) -> None:
        keywords = _deserializers(step)
        if "offset_reset" in step:
            keywords["offset_reset_policy"] = options.offset_reset(step["offset_reset"])
        if "timestamp_extractor" in step:
            keywords["timestamp_extractor"] = functions.timestamp_extractor(step["timestamp_extractor"])
        topics = [re.compile(step["pattern"])] if "pattern" in step else step["topics"]
        operation(self.finish(), "add_source")(step["name"], *topics, **keywords)

    def _op_add_processor(self, step: Step) -> None:
        supplier = processors.supplier(step["processor"], step["id"], self._setting)
        operation(self.finish(), "add_processor")(step["name"], supplier, *step.get("parents", ()))

    def _op_add_sink(self, step: Step) -> None:
        keywords: dict[str, Any] = {}
        for field in ("key", "value"):
            if field in step:
                keywords[f"{field}_serializer"] = optional_serde(step[field]).serializer
        if "partitioner" in step:
            keywords["partitioner"] = functions.partitioner(step["partitioner"])
        topic = functions.TopicExtractor(step["topic_fn"]) if "topic_fn" in step else step["topic"]
        operation(self.finish(), "add_sink")(step["name"], topic, *step.get("parents", ()), **keywords)

    def _op_connect(self, step: Step) -> None:
        connect = operation(self.finish(), "connect_processor_and_state_stores")
        connect(step["processor"], *step.get("stores", ()))


class _WithoutKey:
    """A joiner that does not see the key; it is null for the function."""

    def __init__(self, joiner: functions.Joiner) -> None:
        self._joiner = joiner

    def __call__(self, left: Any, right: Any) -> Any:
        return self._joiner(None, left, right)


def _value_only(select: functions.Selector) -> Callable[[Any], Any]:
    return lambda value: select(None, value)


def _with_key(step: Step, function: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any]]:
    return (function if step.get("with_key") else lambda value: function(None, value),)


def _key_flag(step: Step) -> dict[str, Any]:
    return {"with_key": True} if step.get("with_key") else {}


def _pair(step: Step) -> Callable[[Any, Any], tuple[Any, Any]]:
    key, value = functions.selector(step["key"]), functions.selector(step["value"])
    return lambda k, v: (key(k, v), value(k, v))


def _named(step: Step) -> dict[str, Any]:
    return {"name": step["named"]} if "named" in step else {}


def _materialized(step: Step) -> dict[str, Any]:
    return {"materialized": stores.materialized(step["materialized"])} if "materialized" in step else {}


def _option(step: Step, field: str, make: Callable[[Json], Any]) -> list[Any]:
    return [make(step[field])] if field in step else []


def _consumed(step: Step) -> list[Any]:
    return _option(step, "consumed", options.consumed)


def _deserializers(spec: Json) -> dict[str, Any]:
    return {
        f"{field}_deserializer": optional_serde(spec[field]).deserializer for field in ("key", "value") if field in spec
    }


def _branched(branch: Json, found: dict[str, Any]) -> Any:
    def keep(stream: Any) -> Any:
        found[branch["id"]] = stream
        return stream

    how = {"consumer": keep} if branch.get("consumer") else {"function": keep}
    return public("Branched")(branch.get("name"), **how)
