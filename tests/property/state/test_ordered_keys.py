"""Ordered keys equal sorting, awake or asleep; a merge of two layers equals a dict update."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.state import ordered
from pykstreams.state.engine import after, prefix_end
from pykstreams.state.ordered import OrderedKeys, merged

KEYS = st.binary(max_size=2)
BOUNDS = st.one_of(st.none(), KEYS)


def within(key: bytes, lower: bytes | None, upper: bytes | None) -> bool:
    return (lower is None or lower <= key) and (upper is None or key < upper)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), KEYS),
            st.tuples(st.just("discard"), KEYS),
            st.tuples(st.just("scan"), BOUNDS, BOUNDS, st.booleans()),
        ),
        max_size=60,
    ),
    start=st.sets(KEYS, max_size=20),
)
def test_ordered_keys_equal_sorting(steps: list[tuple[object, ...]], start: set[bytes]) -> None:
    chunk, ordered._CHUNK = ordered._CHUNK, 2  # type: ignore[misc]
    try:
        mapping = dict.fromkeys(start, 0)
        keys = OrderedKeys(mapping)
        for name, *arguments in steps:
            if name == "scan":
                lower, upper, reverse = arguments
                expected = sorted((key for key in mapping if within(key, lower, upper)), reverse=bool(reverse))  # type: ignore[arg-type]

                assert keys.between(lower, upper, bool(reverse)) == expected  # type: ignore[arg-type]
                continue
            key = arguments[0]
            assert isinstance(key, bytes)
            if name == "add" and key not in mapping:
                mapping[key] = 0
                keys.add(key)
            elif name == "discard" and key in mapping:
                del mapping[key]
                keys.discard(key)
    finally:
        ordered._CHUNK = chunk  # type: ignore[misc]


@given(
    above=st.dictionaries(KEYS, st.one_of(st.none(), st.binary(max_size=1))),
    below=st.dictionaries(KEYS, st.binary(max_size=1)),
    reverse=st.booleans(),
)
def test_merge_of_two_layers_equals_an_update(
    above: dict[bytes, bytes | None], below: dict[bytes, bytes], reverse: bool
) -> None:
    union = {**below, **above}
    expected = [(key, union[key]) for key in sorted(union, reverse=reverse) if union[key] is not None]

    assert (
        list(merged(sorted(above.items(), reverse=reverse), iter(sorted(below.items(), reverse=reverse)), reverse))
        == expected
    )


@given(key=KEYS, other=KEYS)
def test_bounds_take_in_exactly_what_they_say(key: bytes, other: bytes) -> None:
    end = prefix_end(key)

    assert (other < after(key)) == (other <= key)
    assert (other >= key and (end is None or other < end)) == other.startswith(key)
