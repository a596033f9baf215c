"""The orders of Java's unordered collections, against values taken from Java 17."""

import random

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.topology.java.hash_order import hash_code, hash_set_order
from pykstreams.topology.java.tree_set import TreeSet


def test_hash_codes_are_those_of_java_strings() -> None:
    assert [hash_code(text) for text in ("", "a", "store", "ü€")] == [0, 97, 109770977, 16176]


def test_names_come_out_by_bucket_and_then_by_insertion() -> None:
    assert hash_set_order(["b", "a", "q", "r"]) == ("a", "q", "b", "r")


def test_a_set_grows_when_it_is_more_than_three_quarters_full() -> None:
    names = ["p", *"abcdefghijkl"]  # bucket 0 of 16, but 16 of 32

    assert hash_set_order(names[:12]) == tuple("pabcdefghijk")
    assert hash_set_order(names) == tuple("abcdefghijklp")


def test_a_copied_set_starts_with_room_for_all() -> None:
    assert hash_set_order("pabcdefghijk", copied=True) == tuple("abcdefghijkp")


def test_names_of_stores_come_out_as_in_java() -> None:
    names = "cnt-store orders-store KSTREAM-AGGREGATE-STATE-STORE-0000000002 t-STATE-STORE-0000000009 x"

    assert hash_set_order(names.split()) == (
        "KSTREAM-AGGREGATE-STATE-STORE-0000000002",
        "t-STATE-STORE-0000000009",
        "x",
        "orders-store",
        "cnt-store",
    )


@given(st.lists(st.integers(), unique=True))
def test_a_tree_of_members_that_stay_the_same_is_sorted(numbers: list[int]) -> None:
    class Box:
        def __init__(self, number: int) -> None:
            self.number = number

    tree: TreeSet[Box] = TreeSet(lambda new, old: new.number < old.number)
    boxes = [Box(number) for number in numbers]
    random.Random(0).shuffle(boxes)
    for box in boxes + boxes:
        tree.add(box)

    assert [box.number for box in tree] == sorted(numbers)
