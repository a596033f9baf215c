"""Ordered keys equal sorting, awake or asleep; a merge of two layers equals a dict update."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.state.engines import ordered
from pykstreams.state.engines.ordered import KeyIndex, OrderedKeys, merged
from pykstreams.state.interfaces.engine import after, prefix_end

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
    chunk, ordered._CHUNK = ordered._CHUNK, 2
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
        ordered._CHUNK = chunk


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), KEYS, KEYS),
            st.tuples(st.just("discard"), KEYS, KEYS),
            st.tuples(st.just("of"), KEYS, KEYS, KEYS, st.booleans()),
            st.tuples(st.just("clear")),
        ),
        max_size=60,
    ),
    start=st.sets(st.tuples(KEYS, KEYS), max_size=20),
)
def test_index_of_keys_equals_sorting_the_keys_of_one(
    steps: list[tuple[Any, ...]], start: set[tuple[bytes, bytes]]
) -> None:
    def composed(key: bytes, before: bytes) -> bytes:
        return before.rjust(2, b"-") + key.ljust(2, b"-")

    mapping = {composed(key, before): 0 for key, before in start}
    index = KeyIndex(mapping, slice(2, 4))
    for name, *arguments in steps:
        if name == "of":
            key, one, other, reverse = arguments
            lower, upper = composed(key, one), composed(key, other)
            wanted = (each for each in mapping if each[2:] == composed(key, b"")[2:] and within(each, lower, upper))

            assert index.of(composed(key, b"")[2:], lower, upper, reverse) == sorted(wanted, reverse=reverse)
        elif name == "clear":
            index.clear()
        elif name == "add" and composed(*arguments) not in mapping:
            mapping[composed(*arguments)] = 0
            index.add(composed(*arguments))
        elif name == "discard" and composed(*arguments) in mapping:
            del mapping[composed(*arguments)]
            index.discard(composed(*arguments))


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
