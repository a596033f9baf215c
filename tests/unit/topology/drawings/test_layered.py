"""Layers: whatever the graph, nodes do not overlap, links go down, and those that cannot go around."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.topology.drawings.layered import GraphLayout, Link, Size, arrange

GAP = Size(20, 30)


def place(sizes: dict[str, Size], *links: tuple[str, str], **options: object) -> GraphLayout:
    return arrange(sizes, [Link(*link) for link in links], gap=GAP, **options)  # type: ignore[arg-type]


def squares(names: str) -> dict[str, Size]:
    return dict.fromkeys(names, Size(40, 20))


def test_chain_is_a_straight_line_down() -> None:
    layout = place(squares("abc"), ("a", "b"), ("b", "c"))

    assert [layout.middles[name] for name in "abc"] == [(20, 10), (20, 60), (20, 110)]
    assert all(x == 20 for route in layout.routes for x, _ in route)
    assert layout.size == Size(40, 120)


def test_nothing_has_no_size() -> None:
    assert place({}).size == Size(0, 0)


def test_layers_are_ordered_so_that_links_do_not_cross_where_they_need_not() -> None:
    layout = place(squares("abcd"), ("a", "d"), ("b", "c"))
    x = {name: at[0] for name, at in layout.middles.items()}

    assert (x["a"] < x["b"]) == (x["d"] < x["c"])


def test_long_link_passes_beside_what_stands_between() -> None:
    layout = place(squares("abc"), ("a", "b"), ("b", "c"), ("a", "c"))
    b_x, b_y = layout.middles["b"]
    beside = [x for x, y in layout.routes[2] if abs(y - b_y) <= 10]

    assert beside
    assert all(abs(x - b_x) > 20 for x in beside)


def test_what_has_nothing_above_it_stands_right_above_what_it_leads_to() -> None:
    layout = place(squares("abcs"), ("a", "b"), ("b", "c"), ("s", "c"))

    assert layout.middles["s"][1] == layout.middles["b"][1]


def test_top_and_bottom_can_be_asked_for() -> None:
    layout = place(squares("abcse"), ("a", "b"), ("b", "c"), ("s", "c"), ("a", "e"), top={"s"}, bottom={"e"})

    assert layout.middles["s"][1] == layout.middles["a"][1]
    assert layout.middles["e"][1] == layout.middles["c"][1]


def test_link_that_closes_a_cycle_leaves_below_and_comes_in_from_above() -> None:
    layout = place(squares("ab"), ("a", "b"), ("b", "a"))
    (start_x, start_y), *_, (end_x, end_y) = layout.routes[1]

    assert (start_x, start_y) == (layout.middles["b"][0], layout.middles["b"][1] + 10)
    assert (end_x, end_y) == (layout.middles["a"][0], layout.middles["a"][1] - 10)


def test_links_start_and_end_where_they_are_fixed() -> None:
    layout = arrange(squares("ab"), [Link("a", "b", start_dx=15, end_dx=-15)], gap=GAP)

    assert layout.routes[0][0][0] == layout.middles["a"][0] + 15
    assert layout.routes[0][-1][0] == layout.middles["b"][0] - 15


NAMES = "abcdefghij"


@settings(max_examples=80, deadline=None)
@given(
    count=st.integers(1, 10),
    pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=18),
    widths=st.lists(st.integers(10, 120), min_size=10, max_size=10),
    heights=st.lists(st.integers(10, 60), min_size=10, max_size=10),
    hanging=st.booleans(),
)
def test_nodes_never_overlap_and_no_link_crosses_a_node(
    count: int, pairs: list[tuple[int, int]], widths: list[int], heights: list[int], hanging: bool
) -> None:
    sizes = {NAMES[i]: Size(widths[i], heights[i]) for i in range(count)}
    links = [Link(NAMES[a], NAMES[b]) for a, b in dict.fromkeys(pairs) if a < count and b < count and a != b]
    layout = arrange(sizes, links, gap=GAP, hanging=hanging)

    boxes = {
        name: (
            x - sizes[name].width / 2,
            y - sizes[name].height / 2,
            x + sizes[name].width / 2,
            y + sizes[name].height / 2,
        )
        for name, (x, y) in layout.middles.items()
    }
    for one, other in itertools.combinations(boxes.values(), 2):
        assert one[2] <= other[0] + 1e-6 or other[2] <= one[0] + 1e-6 or one[3] <= other[1] or other[3] <= one[1]
    for link, route in zip(links, layout.routes, strict=True):
        for (x0, y0), (x1, y1) in itertools.pairwise(route):
            if x0 == x1 and abs(y1 - y0) > 1e-6:  # a straight piece: beside a node, or to its edge
                low, high = sorted((y0, y1))
                for name, (left, top, right, bottom) in boxes.items():
                    inside = left + 1e-6 < x0 < right - 1e-6 and low < bottom - 1e-6 and high > top + 1e-6
                    assert not inside, (link, name)
