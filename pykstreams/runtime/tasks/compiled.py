"""Compiles the plan of a sub-topology into callables: from the leaves up, each with its children bound.

Invariant: everything that can be decided once is decided here; what is returned only runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pykstreams.core.errors import ConfigError, StreamsError
from pykstreams.core.processor import OperatorSupplier, forwards_input, forwards_new_values
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import ColumnReader, Decoder, Forward, Headers
from pykstreams.processors.user import UserProcessor
from pykstreams.runtime.tasks.context import NodeContext, NodeProcessingContext, TaskState
from pykstreams.runtime.tasks.failures import PASSED_THROUGH
from pykstreams.runtime.tasks.observers import RecordObserver
from pykstreams.runtime.tasks.sinks import Sink
from pykstreams.serdes.base import bind_deserializer, column_reader
from pykstreams.serdes.defaults import default_part, or_default
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner
from pykstreams.topology.plan import ProcessorNode, SinkNode, SourceNode, SubtopologyPlan


def compile_plan(
    plan: SubtopologyPlan, task: TaskState, observers: Sequence[RecordObserver] = ()
) -> Mapping[str, Forward]:
    """Returns the callable that takes the records of each source, by the name of the source.

    :param observers: wrap the path, for what has to see each record; each is around those after it.
    """
    built: dict[str, Forward] = {}
    sinks: dict[str, SerializedSink | None] = {}
    """Of each node that is a sink, or forwards to one sink only, without looking at what it forwards."""
    below_sources = _only_below_sources(plan) if task.failures.only_fails else ()
    guarded = () if task.failures.only_fails else _parents_of_sinks(plan)
    for name in reversed(list(plan.nodes)):
        node = plan.nodes[name]
        if isinstance(node, SinkNode):
            built[name], sinks[name] = _sink(node, task, observers, raises=not task.failures.only_fails)
            continue
        sink = sinks.get(node.children[0]) if len(node.children) == 1 else None
        children = {child: built[child] for child in node.children}
        forward = fan_out([built[child] for child in node.children])  # a child that names a parent twice is there twice
        if not (task.failures.only_fails or (isinstance(node, ProcessorNode) and forwards_input(node.operator))):
            forward = task.current.scoped(forward)
        if isinstance(node, SourceNode):
            for observer in reversed(observers):
                forward = observer.at_source(name, forward)
            built[name] = forward
        else:
            built[name] = _processor(
                node, task, forward, children, sink, guard=name in guarded, below_source=name in below_sources
            )
            if forwards_new_values(node.supplier):  # not those that a wrapper may stand behind
                sinks[name] = sink
            for observer in () if node.children else reversed(observers):
                built[name] = observer.at_end(name, built[name])
    return {node.name: built[node.name] for node in plan.sources}


def fan_out(children: Sequence[Forward]) -> Forward:
    """Returns one callable for all children in order: the child itself where there is one."""
    if not children:
        return _nowhere
    if len(children) == 1:
        return children[0]
    if len(children) == 2:
        first, second = children

        def both(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            first(key, value, timestamp, headers)
            second(key, value, timestamp, headers)

        return both

    def every(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for child in children:
            child(key, value, timestamp, headers)

    return every


def source_decoders(source: SourceNode, topic: str, task: TaskState) -> tuple[Decoder, Decoder]:
    """Returns the decoders of key and value for one topic of a source."""
    where = f"{source.name} (topic {topic!r})"
    key = _resolved(source.key_deserializer, "key", where, task)
    value = _resolved(source.value_deserializer, "value", where, task)
    return bind_deserializer(key, topic), bind_deserializer(value, topic)


def source_column_readers(source: SourceNode, task: TaskState) -> tuple[ColumnReader | None, ColumnReader | None]:
    """Returns what reads many keys, and many values, of a source at once, where that cannot be told from reading each
    with its decoder.
    """
    key = _resolved(source.key_deserializer, "key", source.name, task)
    value = _resolved(source.value_deserializer, "value", source.name, task)
    return column_reader(key), column_reader(value)


def _nowhere(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
    """Where records of a node without children go."""


def _processor(
    node: ProcessorNode,
    task: TaskState,
    forward: Forward,
    children: Mapping[str, Forward],
    sink: SerializedSink | None,
    *,
    guard: bool,
    below_source: bool,
) -> Forward:
    processing = NodeProcessingContext(task, node.name, node.stores)
    context = NodeContext(task, node.name, processing, forward, children, sink, gets_what_was_read=below_source)
    supplier: Any = node.supplier
    operator: OperatorSupplier = supplier if hasattr(supplier, "build") else UserProcessor(supplier)
    run = operator.build(context)
    return _guarded(run, context) if guard else run


def _guarded(run: Forward, context: NodeContext) -> Forward:
    """Lets a node answer for errors of the sinks below it, as in Kafka Streams.

    There a sink has no exception handling of its own: what it raises surfaces at the processor that forwarded to
    it, which loses the record for its later children, too (``SinkNode.process``, ``ProcessorNode.process``, 4.3.1).
    """
    fail = context.fail

    def guarded(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        try:
            run(key, value, timestamp, headers)
        except PASSED_THROUGH:
            raise
        except Exception as error:
            fail(error, key, value, timestamp, headers)

    return guarded


def _only_below_sources(plan: SubtopologyPlan) -> frozenset[str]:
    """The nodes that get records from sources only, whose messages have their keys and values as long as errors of
    sinks are final.
    """
    from_sources = {child for node in plan.sources for child in node.children}
    return frozenset(
        from_sources.difference(*(node.children for node in plan.nodes.values() if isinstance(node, ProcessorNode)))
    )


def _parents_of_sinks(plan: SubtopologyPlan) -> frozenset[str]:
    return frozenset(
        node.name
        for node in plan.nodes.values()
        if isinstance(node, ProcessorNode) and any(isinstance(plan.nodes[child], SinkNode) for child in node.children)
    )


def _sink(
    node: SinkNode, task: TaskState, observers: Sequence[RecordObserver], *, raises: bool
) -> tuple[Forward, SerializedSink | None]:
    where = f"{node.name} (topic {node.topic!r})" if isinstance(node.topic, str) else node.name
    key = _resolved(node.key_serializer, "key", where, task)
    value = _resolved(node.value_serializer, "value", where, task)

    def fail(error: Exception, record_key: Any, record_value: Any, timestamp: int, headers: Headers) -> None:
        if raises:
            raise error
        task.failures.processing(node.name, error, record_key, record_value, timestamp, headers)

    sink = Sink(
        node.name,
        key,
        value,
        task.collector,
        task.failures,
        task.current,
        lambda reason: task.dropped.drop(node.name, reason),
        fail,
        lets_go=raises,
        around=[partial(observer.at_sink, node.name) for observer in reversed(observers)],
    )
    partitioner = node.partitioner
    if isinstance(partitioner, ReferencePartitioner):
        partitioner = partitioner.over_default(lambda: task.config.default_key_serde, task.collector.partition_for_key)
    if isinstance(node.topic, str):
        task.collector.register(task.task_id, node.name, node.topic)
        return sink.to_topic(node.topic, partitioner), sink.of_serialized(node.topic, partitioner)
    task.collector.register(task.task_id, node.name, None)
    return sink.to_chosen_topic(node.topic, partitioner), None


def _resolved(given: Any, part: str, where: str, task: TaskState) -> Any:
    """Returns a serializer, deserializer or serde: the one of the node, or the default of the configuration."""
    config = task.config
    part = default_part(given, part)
    try:
        return or_default(given, lambda: config.default_key_serde if part == "key" else config.default_value_serde)
    except ConfigError as error:
        raise StreamsError(f"{where}: {error}", task_id=task.task_id) from error


def source_of(plan: SubtopologyPlan, topic: str) -> SourceNode:
    """Returns the source that reads a topic: by name, or else by pattern."""
    found: SourceNode | None = next((node for node in plan.sources if topic in node.topics), None)
    if found is None:
        found = next(
            (
                node
                for node in plan.sources
                if node.pattern is not None
                and (node.pattern.pattern == topic or node.pattern.fullmatch(topic) is not None)
            ),
            None,
        )
    if found is None:
        raise StreamsError(
            f"no source of sub-topology {plan.id} reads topic {topic!r}; do all workers of the application run the "
            "same topology?"
        )
    return found
