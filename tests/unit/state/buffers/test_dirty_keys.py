"""Dirty keys come out in the order of Java's ``HashSet<Bytes>``; the expected orders were made by Java 17."""

from __future__ import annotations

from pykstreams.state.buffers.dirty_keys import DirtyKeys, hash_code

WORDS = "pear fig kiwi plum lime date apple é order-17 order-18 zzzzzzzz q lemon melon".split()
ORDER = "fig lemon pear zzzzzzzz q kiwi date order-18 order-17 lime melon plum é apple".split()
ORDER_AFTER_100 = "date lime pear lemon plum fig zzzzzzzz kiwi q melon apple order-18 order-17 é".split()


def keys(*texts: str) -> DirtyKeys:
    made = DirtyKeys()
    for text in texts:
        made.add(text.encode())
    return made


def in_order(dirty: DirtyKeys) -> list[str]:
    return [key.decode() for key in dirty.in_order()]


def test_hash_codes_are_those_of_java() -> None:
    assert [hash_code(data) for data in (b"", b"a", b"\xff", b"order-17")] == [1, 128, 30, 3721767942]


def test_keys_come_by_bucket() -> None:
    assert in_order(keys(*WORDS)) == ORDER


def test_buckets_stay_when_keys_are_gone() -> None:
    dirty = keys(*(f"k{i}" for i in range(100)))
    dirty.in_order()
    dirty.clear()
    for word in WORDS:
        dirty.add(word.encode())

    assert in_order(dirty) == ORDER_AFTER_100


def test_a_key_is_there_once() -> None:
    dirty = keys("a", "a")

    assert in_order(dirty) == ["a"]
    dirty.clear()
    assert not dirty
