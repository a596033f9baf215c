"""The rewrites of the logical graph: which are always made, which only when asked for, and what is refused."""

from __future__ import annotations

import re

import pytest

from pykstreams.errors import StreamsError, TopologyError
from pykstreams.processors import PassThrough
from pykstreams.topology.graph import (
    Effect,
    Graph,
    RepartitionNode,
    SourceSettings,
    Step,
    StreamStreamJoinNode,
    TableSourceNode,
)
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.optimizer import optimize
from tests.unit.topology.logical_graphs import add_pattern, add_repartition, add_source, add_step, make_repartition

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


def test_sources_of_one_pattern_become_one_unless_its_flags_differ() -> None:
    graph = Graph()
    for name, flags in (("first", 0), ("second", 0), ("third", re.IGNORECASE)):
        add_pattern(graph, name, re.compile("log-.*", flags))
    optimize(graph, NOTHING, make_repartition)

    assert names(graph) == ["first", "third"]


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
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), effect=Effect.CHANGES_KEY)
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


def test_merged_topic_has_the_first_serdes_that_a_branch_gives_and_comes_where_the_change_of_keys_does() -> None:
    graph = Graph()
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), effect=Effect.CHANGES_KEY)
    add_step(graph, "later", changer)
    add_repartition(graph, "one", changer, value_serde="a value serde")
    add_repartition(graph, "two", changer, key_serde="a key serde", value_serde="another one")
    optimize(graph, MERGE, make_repartition)

    (merged,) = (node for node in graph.nodes() if isinstance(node, RepartitionNode))
    assert [str(merged.settings.key_serde), str(merged.settings.value_serde)] == ["a key serde", "a value serde"]
    assert merged.priority == changer.priority


def test_streams_whose_keys_have_changed_go_through_one_topic_behind_their_merge() -> None:
    graph = Graph()
    source = add_source(graph, "source", "in")
    left, right = (add_step(graph, name, source, effect=Effect.CHANGES_KEY) for name in ("left", "right"))
    merge = add_step(graph, "merge", left, right, effect=Effect.MERGES)
    counted = add_step(graph, "counted", add_repartition(graph, "one", merge))
    summed = add_step(graph, "summed", add_repartition(graph, "two", merge))
    optimize(graph, MERGE, make_repartition)

    (merged,) = (node for node in graph.nodes() if isinstance(node, RepartitionNode))
    assert (left.children, right.children, merge.children) == ([merge], [merge], [merged])
    assert set(merged.children) >= {counted, summed}


def test_branches_that_come_by_one_step_cannot_be_merged_and_the_error_tells_the_cure() -> None:
    graph = Graph()
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), effect=Effect.CHANGES_KEY)
    kept = add_step(graph, "kept", changer)
    add_repartition(graph, "one", kept)
    add_repartition(graph, "two", kept)

    with pytest.raises(StreamsError, match="behind changer, since both come by one node; name the repartition topics"):
        optimize(graph, MERGE, make_repartition)


def test_branches_keep_their_topics_unless_asked_for() -> None:
    graph = Graph()
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), effect=Effect.CHANGES_KEY)
    one, two = add_repartition(graph, "one", changer), add_repartition(graph, "two", changer)
    optimize(graph, NOTHING, make_repartition)

    assert changer.children == [one, two]


def test_a_topic_behind_a_change_of_values_stays_where_it_is() -> None:
    graph = Graph()
    changer = add_step(graph, "changer", add_source(graph, "source", "in"), effect=Effect.CHANGES_KEY)
    mapped = add_step(graph, "mapped", changer, effect=Effect.CHANGES_VALUE)
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
