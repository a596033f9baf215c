"""Topologies that read nothing: without a source there is no task, and nothing ever happens.

A test driver takes them, as that of Kafka Streams does.
"""

from __future__ import annotations

from pykstreams.core.errors import TopologyError
from pykstreams.topology.plan import TopologyPlan


def check_sources(plan: TopologyPlan) -> None:
    """Raises ``TopologyError`` when neither a task nor a global store reads a topic.

    ``TopologyMetadata.getNumStreamThreads``, 4.3.1.
    """
    if said := missing_sources(plan):
        raise TopologyError(said)


def missing_sources(plan: TopologyPlan) -> str | None:
    """Returns a text, with the cure, for a topology that reads nothing; ``None`` for others."""
    if plan.subtopologies or plan.global_stores:
        return None
    return (
        "Topology has no stream threads and no global threads, must subscribe to at least one source topic or global "
        "table; read a topic with StreamsBuilder.stream, table or global_table, or Topology.add_source, on the builder "
        "or topology that is given"
    )
