"""Whether a store that is new has all that it would have had if it had been there from the beginning."""

from __future__ import annotations

from typing import Final

from pykstreams.topology.changes.shape import StoreShape, TopologyShape

SUPPRESSION: Final = "in-memory-suppression"
"""The kind of the stores whose rows are results that wait; their changelog keeps them."""


def missed_topics(store: StoreShape, old: TopologyShape, new: TopologyShape) -> list[str]:
    """Returns the topics that lead to a new store and were read before, so that what was in them does not come again.

    Repartition topics, and topics that only the new application writes, are followed back to what they are written
    from: it is there that the application begins, at its committed offsets. A store that is restored from a topic
    that is read has all of it.
    """
    if keeps_nothing(store) or store.changelog in {topic.name for topic in new.inputs}:
        return []
    if store.fed_by is None or new.written is None:
        return _by_subtopology(store, old, new)
    known = {topic.name for topic in old.inputs}
    written_before = old.written or {}
    repartition = {topic.name for topic in new.repartition_topics}
    todo, seen, found = list(store.fed_by), set[str](), set[str]()
    while todo:
        topic = todo.pop()
        if topic in seen:
            continue
        seen.add(topic)
        if topic in known:
            found.add(topic)
        elif topic in repartition or (old.written is not None and topic not in written_before):
            todo += new.written.get(topic, ())
    return sorted(found)


def _by_subtopology(store: StoreShape, old: TopologyShape, new: TopologyShape) -> list[str]:
    """The same where a description does not tell what leads where: a repartition topic may come from any input."""
    repartitioned = any(topic.subtopology == store.subtopology for topic in new.repartition_topics)
    reads = {topic.name for topic in new.inputs if repartitioned or topic.subtopology == store.subtopology}
    return sorted(reads & {topic.name for topic in old.inputs})


def keeps_nothing(store: StoreShape) -> bool:
    """Whether a store begins empty at every start: it is in memory, and has no changelog."""
    return store.changelog is None and store.kind.startswith("in-memory")


def is_like(store: StoreShape, other: StoreShape) -> bool:
    """Whether two stores may be the same one under two names."""
    return (store.kind, store.key_serde, store.value_serde) == (other.kind, other.key_serde, other.value_serde)
