"""What a non-key join writes for itself, and what it does with records that may have been worked on before."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.metrics import StreamsMetrics
from pykstreams.errors import SerdeError
from pykstreams.processors.foreign_keys.mapped_rows import MappedKey, MappedKeySerde, without_mapped_key
from pykstreams.processors.foreign_keys.selected_keys import Matched, Numbered, NumberedSerde, SelectedKeys, SelectKeys
from pykstreams.serdes import CombinedKey, LongSerde, Serdes, StringSerde
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

NUMBERED = NumberedSerde(StringSerde())
MAPPED = MappedKeySerde(LongSerde(), StringSerde())


def test_numbered_result_has_its_number_in_front() -> None:
    assert NUMBERED.serialize("t", Numbered(3, "a")) == b"\0\0\0\0\0\0\0\3a"
    assert NUMBERED.deserialize("t", b"\0\0\0\0\0\0\0\3a") == Numbered(3, "a")
    assert NUMBERED.serialize("t", None) is None
    assert NUMBERED.deserialize("t", None) is None


def test_what_is_no_numbered_result_is_refused() -> None:
    with pytest.raises(SerdeError, match="expected a number of 8 bytes and a result"):
        NUMBERED.deserialize("t", b"\0\3a")
    with pytest.raises(SerdeError, match="the inner serde gives no bytes"):
        NumberedSerde(Serdes.from_functions(lambda data: None, bytes)).serialize("t", Numbered(0, b"a"))  # type: ignore[arg-type, return-value]


def test_mapped_key_is_read_from_the_last_header_of_its_name() -> None:
    headers = (("mapped-key", b"mine"), ("trace", b"7"), ("mapped-key", b"\0\0\0\0\0\0\0\5"))

    assert MAPPED.serialize("t", MappedKey(5, "a", b"\0\0\0\0\0\0\0\5"), headers) == b"a"
    assert MAPPED.deserialize("t", b"a", headers) == CombinedKey(5, "a")
    assert without_mapped_key(headers) == headers[:2]
    assert without_mapped_key((("trace", b"7"),)) == (("trace", b"7"),)


def test_null_header_is_a_row_without_mapped_key() -> None:
    assert MAPPED.deserialize("t", b"a", (("mapped-key", None),)) == CombinedKey(None, "a")


def test_record_without_the_header_is_refused_with_the_name_of_the_header() -> None:
    with pytest.raises(SerdeError, match="has no header 'mapped-key'; only this application may write"):
        MAPPED.deserialize("t", b"a", ())


@pytest.mark.parametrize(
    ("key", "new", "sent"),
    [
        (("m", "k"), Matched(True, "r"), {("k", None): None, ("k", "m"): "r"}),
        (("m", "k"), None, {("k", None): None, ("k", "m"): None}),
        ((None, "k"), Matched(False, "r"), {("k", None): "r"}),
        (("m", None), None, {(None, "m"): None}),
    ],
)
def test_repeated_result_is_deleted_under_the_other_key_that_it_may_have_had(
    key: tuple[Any, Any], new: Any, sent: dict[Any, Any]
) -> None:
    context = FakeOperatorContext()
    context.current.replayed = True
    process = context.start(SelectKeys(lambda own, mapped: (own, mapped)))
    process(CombinedKey(*key), (new, new, True), 5, ())

    assert {found.prefix: value for found, value, _, _ in context.forwarded} == sent


@pytest.mark.parametrize(("repeated", "forwarded"), [(False, []), (True, [("s", ("first", "first", True), 5, ())])])
def test_repeated_deletion_of_a_result_that_is_gone_tells_which_one_is_the_last(
    repeated: bool, forwarded: list[Any]
) -> None:
    store = FakeStore()
    store.rows[CombinedKey("s", CombinedKey("m", "k"))] = (Numbered(0, "first"), 3)
    context = FakeOperatorContext(s=store)
    context.processing.metrics = StreamsMetrics()
    context.current.replayed = repeated
    context.start(SelectedKeys("s", None))(CombinedKey("s", CombinedKey("m", "gone")), None, 5, ())

    assert context.forwarded == forwarded
