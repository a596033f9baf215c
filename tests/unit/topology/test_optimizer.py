"""The rewrites of the logical graph: which are always made, which only when asked for, and what is refused."""

from __future__ import annotations

import pytest

from pykstreams.errors import TopologyError
from pykstreams.processors import PassThrough
from pykstreams.topology.graph import (
    Graph,
    RepartitionNode,
    SourceSettings,
    Step,
    StreamStreamJoinNode,
    TableSourceNode,
)
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.optimizer import optimize
from tests.unit.topology.logical_graphs import add_repartition, add_source, add_step, make_repartition

NOTHING = frozenset[str]()
MERGE = frozenset({"merge.repartition.topics"})


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes()]


def test_sources_of_the_same_topics_become_one() -> None:
    graph = Graph()
    first, second = add_source(graph, "first", "a", "b"), add_source(graph, "second", "b", "a")
    left, right = add_step(graph, "left", first), add_step(graph, "right", second)
    optimize(graph, NOTHING, make_repartition)

    assert names(graph) == ["first", "left", "right"]
    assert first.children == [left, right]


def test_sources_that_share_some_topics_only_are_refused() -> None:
    graph = Graph()
    add_source(graph, "first", "a", "b")
    add_source(graph, "second", "b")

    with pytest.raises(TopologyError, match=r"first \(a, b\) and second \(b\) read overlapping but not equal topics"):
        optimize(graph, NOTHING, make_repartition)


def test_sources_of_the_same_topic_with_different_reset_policies_are_refused() -> None:
    graph = Graph()
    add_source(graph, "first", "a", offset_reset=AutoOffsetReset.EARLIEST)
    add_source(graph, "second", "a", offset_reset=AutoOffsetReset.LATEST)

    with pytest.raises(TopologyError, match="first and second read a with different offset reset policies"):
        optimize(graph, NOTHING, make_repartition)


@pytest.mark.parametrize("wanted", [NOTHING, frozenset({"reuse.ktable.source.topics"})])
def test_a_table_reuses_its_topic_as_changelog_only_when_asked_for(wanted: frozenset[str]) -> None:
    graph = Graph()
    settings = SourceSettings(None, None, None, None)
    table = TableSourceNode("table", "source", "rows", settings, PassThrough, tuple, versioned=False)
    graph.add(table, graph.root)
    optimize(graph, wanted, make_repartition)

    assert bool(wanted) == table.reuses_topic


def test_branches_of_one_change_of_keys_go_through_one_topic() -> None:
    graph = Graph()
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), changes_key=True)
    kept = add_step(graph, "kept", changer)
    one, two = add_repartition(graph, "one", kept), add_repartition(graph, "two", changer)
    counted, joined = add_step(graph, "counted", one), add_step(graph, "joined", two)
    graph.copartitioned.append({two.name, "other"})
    optimize(graph, MERGE, make_repartition)

    (merged,) = (node for node in graph.nodes() if isinstance(node, RepartitionNode))
    assert merged.settings.topic == "one"
    assert changer.children == [merged]
    assert (counted.parents, joined.parents) == ([kept], [merged])
    assert kept.parents == [merged]
    assert graph.copartitioned == [{merged.name, "other"}]


def test_branches_keep_their_topics_unless_asked_for() -> None:
    graph = Graph()
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), changes_key=True)
    one, two = add_repartition(graph, "one", changer), add_repartition(graph, "two", changer)
    optimize(graph, NOTHING, make_repartition)

    assert changer.children == [one, two]


def test_a_topic_behind_a_change_of_values_stays_where_it_is() -> None:
    graph = Graph()
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), changes_key=True)
    mapped = add_step(graph, "mapped", changer, changes_value=True)
    repartition = add_repartition(graph, "one", mapped)
    optimize(graph, MERGE, make_repartition)

    assert mapped.children == [repartition]
    assert changer.children == [mapped]


def test_records_without_key_are_kept_only_above_a_join_that_wants_them() -> None:
    graph = Graph()
    source = add_source(graph, "source", "in")
    above, beside = add_repartition(graph, "above", source), add_repartition(graph, "beside", source)
    add_step(graph, "left join", add_step(graph, "between", above), joins_null_keys=True)
    add_step(graph, "inner join", beside)
    optimize(graph, NOTHING, make_repartition)

    assert (above.keeps_null_keys, beside.keeps_null_keys) == (True, False)


@pytest.mark.parametrize("wanted", [NOTHING, frozenset({"single.store.self.join"})])
def test_a_stream_that_is_joined_with_itself_has_one_store_only_when_asked_for(wanted: frozenset[str]) -> None:
    graph = Graph()
    source = add_source(graph, "source", "in")
    add_step(graph, "this", source)
    add_step(graph, "other", source)
    step = Step("merge", PassThrough())
    join = StreamStreamJoinNode(
        this_windowed="this",
        other_windowed="other",
        this_join=step,
        other_join=step,
        merge=step,
        self_join=step,
        joins_null_keys=False,
    )
    graph.add(join, source, source)
    optimize(graph, wanted, make_repartition)

    assert bool(wanted) == join.joins_itself
    assert ("other" not in names(graph)) == bool(wanted)


def test_two_streams_that_are_joined_keep_their_stores() -> None:
    graph = Graph()
    sources = add_source(graph, "left", "a"), add_source(graph, "right", "b")
    step = Step("merge", PassThrough())
    join = StreamStreamJoinNode(
        this_windowed="this",
        other_windowed="other",
        this_join=step,
        other_join=step,
        merge=step,
        self_join=step,
        joins_null_keys=False,
    )
    graph.add(join, *sources)
    optimize(graph, frozenset({"single.store.self.join"}), make_repartition)

    assert not join.joins_itself
