"""Writing the logical graph into a topology: the order of nodes, co-partitioning, and names that nobody gave."""

from __future__ import annotations

import logging

import pytest

from pykstreams import StreamsConfig, Topology
from pykstreams.errors import TopologyError
from pykstreams.topology.compiler import compile_graph
from pykstreams.topology.graph import Graph, GraphNode
from tests.unit.topology.logical_graphs import add_repartition, add_source, add_step

CONFIG = StreamsConfig({"application.id": "app"})


class Noting(GraphNode):
    """Notes when it is written."""

    def __init__(self, name: str, written: list[str]) -> None:
        super().__init__(name)
        self._written = written

    def write(self, topology: Topology) -> None:
        self._written.append(self.name)


def test_a_node_is_written_once_and_after_all_its_parents() -> None:
    graph = Graph()
    written: list[str] = []
    top, left, right, bottom = (Noting(name, written) for name in ("top", "left", "right", "bottom"))
    graph.add(top, graph.root)
    graph.add(left, top)
    graph.add(bottom, left)
    graph.add(right, top)
    right.add_child(bottom)
    compile_graph(graph, Topology(), explicit_names=False)

    assert written == ["top", "left", "right", "bottom"]


def test_nodes_of_different_branches_are_written_in_the_order_of_adding() -> None:
    graph = Graph()
    written: list[str] = []
    first, second, below_first, below_second = (Noting(name, written) for name in "abcd")
    graph.add(first, graph.root)
    graph.add(second, graph.root)
    graph.add(below_second, second)
    graph.add(below_first, first)
    compile_graph(graph, Topology(), explicit_names=False)

    assert written == ["a", "b", "d", "c"]


def test_a_repartition_topic_is_written_between_its_sink_and_its_source() -> None:
    graph, topology = Graph(), Topology()
    source = add_source(graph, "source", "in")
    add_step(graph, "behind", add_repartition(graph, "by-key-repartition", source))
    compile_graph(graph, topology, explicit_names=False)
    before, after = topology.plan(CONFIG).subtopologies

    assert list(before.nodes) == ["source", "by-key-repartition-filter", "by-key-repartition-sink"]
    assert list(after.nodes) == ["by-key-repartition-source", "behind"]


def test_groups_of_sources_that_are_joined_get_into_the_topology() -> None:
    graph, topology = Graph(), Topology()
    left, right = add_source(graph, "left", "a"), add_source(graph, "right", "b")
    add_step(graph, "join", left, right)
    graph.copartitioned.append({"left", "right"})
    compile_graph(graph, topology, explicit_names=False)

    assert topology.plan(CONFIG).whole.copartition_groups == (frozenset({"a", "b"}),)


def test_unequal_numbers_of_partitions_of_topics_that_are_joined_are_refused() -> None:
    graph = Graph()
    left = add_repartition(graph, "l", add_source(graph, "left", "a"), partitions=2)
    right = add_repartition(graph, "r", add_source(graph, "right", "b"), partitions=3)
    add_step(graph, "join", left, right)
    graph.copartitioned.append({"l-source", "r-source"})

    with pytest.raises(TopologyError, match=r"l \(2 partitions\), r \(3 partitions\)"):
        compile_graph(graph, Topology(), explicit_names=False)


def test_generated_names_are_refused_where_names_must_be_given() -> None:
    graph = Graph()
    graph.implicit_names.add_store("COUNTS-0000000001", logging=True)

    with pytest.raises(TopologyError, match="changelog topics COUNTS-0000000001-changelog; state stores COUNTS-"):
        compile_graph(graph, Topology(), explicit_names=True)


def test_generated_names_are_logged_where_they_are_allowed(caplog: pytest.LogCaptureFixture) -> None:
    graph = Graph()
    graph.implicit_names.repartitions.append("KSTREAM-0000000001-repartition")
    with caplog.at_level(logging.INFO, logger="pykstreams"):
        compile_graph(graph, Topology(), explicit_names=False)

    assert ["repartition topics KSTREAM-0000000001-repartition" in line for line in caplog.messages] == [True]


@pytest.mark.parametrize("explicit", [False, True])
def test_a_graph_whose_names_were_all_given_is_neither_refused_nor_logged(
    explicit: bool, caplog: pytest.LogCaptureFixture
) -> None:
    graph, topology = Graph(), Topology()
    add_source(graph, "orders", "in")
    with caplog.at_level(logging.INFO, logger="pykstreams"):
        compile_graph(graph, topology, explicit_names=explicit)

    assert list(topology.plan(CONFIG).whole.nodes) == ["orders"]
    assert caplog.messages == []
