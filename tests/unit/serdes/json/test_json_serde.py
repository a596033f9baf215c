"""JSON values, and values of dataclasses, pydantic models and msgspec structs."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, NotRequired, Required, TypedDict
from uuid import UUID

import msgspec
import orjson
import pydantic
import pytest

from pykstreams.core.errors import SerdeError
from pykstreams.serdes import JsonSerde
from pykstreams.serdes.json.json_keys import JsonKeySerde

OrderId = NewType("OrderId", int)
Name = NewType("Name", str)


class State(Enum):
    OPEN = "open"
    PAID = "paid"


class Span(Enum):
    SHORT = (date(2024, 5, 1), 1)
    LONG = (date(2024, 5, 1), 30)


class Rate(Enum):
    LOW = Decimal("1.50")
    HIGH = Decimal("9")


class Holiday(Enum):
    MAY = date(2024, 5, 1)
    FREE = "free"


class Place(TypedDict):
    city: str


@dataclass
class Line:
    article: str
    price: float
    gift: bool = False


class Trip(TypedDict, total=False):
    city: str
    since: datetime
    lines: list[Line]


@dataclass
class Order:
    id: OrderId
    lines: list[Line]
    state: State = State.OPEN
    kind: Literal["shop", "web"] = "web"
    ordered: datetime | None = None
    day: date | None = None
    key: UUID | None = None
    pair: tuple[int, str] = (0, "")
    counts: dict[str, int] = field(default_factory=dict)
    place: Place | None = None
    anything: Any = None
    note: Annotated[str, "shown"] = ""
    parent: Order | None = None
    total: float = field(init=False, default=0.0)


class Model(pydantic.BaseModel):
    id: int
    name: str = pydantic.Field(alias="full_name")


class Perhaps(pydantic.RootModel[int | None]):
    pass


class StrictModel(pydantic.BaseModel, strict=True):
    at: datetime
    shares: tuple[Decimal, ...] = ()


class Struct(msgspec.Struct):
    id: int
    name: str = ""


class Shelf(msgspec.Struct):
    books: dict[int, str]


class LargeModel(pydantic.BaseModel):
    number: int


class LargeStruct(msgspec.Struct):
    number: int


@dataclass
class Whole:
    number: int


@dataclass
class Hidden:
    _secret: int


@dataclass
class Strict:
    id: int

    def __post_init__(self) -> None:
        if self.id < 0:
            raise KeyError("negative")


@dataclass
class Unreadable:
    codec: complex


@dataclass
class Raw:
    data: bytes | None = None


FULL = Order(
    OrderId(5),
    [Line("pen", 1.5), Line("ink", 3.0, gift=True)],
    state=State.PAID,
    ordered=datetime(2024, 5, 1, 12, 30, tzinfo=UTC),
    day=date(2024, 5, 1),
    key=UUID(int=7),
    pair=(1, "x"),
    counts={"pen": 2},
    place={"city": "Bonn"},
    anything=[1, {"a": None}],
    parent=Order(OrderId(4), []),
)


def test_json_values_are_written_compactly() -> None:
    serde = JsonSerde()

    assert serde.serialize("t", {"a": [1, None, "é"]}) == '{"a":[1,null,"é"]}'.encode()
    assert serde.deserialize("t", b' {"a": 1} ') == {"a": 1}


def test_a_dataclass_comes_back_with_all_its_parts() -> None:
    serde = JsonSerde(Order)

    assert serde.deserialize("t", serde.serialize("t", FULL)) == FULL


def test_missing_fields_take_defaults_and_unknown_ones_are_ignored() -> None:
    assert JsonSerde(Line).deserialize("t", b'{"article":"pen","price":2,"new":1}') == Line("pen", 2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id":5}', "lines: is missing, and has no default"),
        ('{"id":"5","lines":[]}', "id: expected int, got '5'"),
        ('{"id":true,"lines":[]}', "id: expected int, got True"),
        ('{"id":5,"lines":5}', "lines: expected list, got 5"),
        ('{"id":5,"lines":[{"article":"a","price":"b"}]}', r"lines\[0\].price: expected float, got 'b'"),
        ('{"id":5,"lines":[5]}', r"lines\[0\]: expected Line, got 5"),
        ('{"id":5,"lines":[],"state":"lost"}', "state: expected State, got 'lost'"),
        ('{"id":5,"lines":[],"state":[]}', r"state: expected State, got \[\]"),
        ('{"id":5,"lines":[],"kind":"fax"}', "kind: expected .*Literal.*, got 'fax'"),
        ('{"id":5,"lines":[],"ordered":"now"}', "ordered: expected datetime.datetime | None, got 'now'"),
        ('{"id":5,"lines":[],"pair":[1]}', r"pair: expected a list of 2, got \[1\]"),
        ('{"id":5,"lines":[],"pair":[1,2]}', r"pair\[1\]: expected str, got 2"),
        ('{"id":5,"lines":[],"counts":{"a":"b"}}', r"counts\['a'\]: expected int, got 'b'"),
        ('{"id":5,"lines":[],"counts":[]}', r"counts: expected dict, got \[\]"),
        ("[]", r"expected Order, got \[\]"),
        ("{", "JSONDecodeError"),
        ("", "JSONDecodeError"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_the_path(text: str, message: str) -> None:
    with pytest.raises(SerdeError, match=rf"JsonSerde\(Order\) cannot read .*{message}"):
        JsonSerde(Order).deserialize("orders", text.encode())


def test_an_error_in_post_init_is_reported() -> None:
    with pytest.raises(SerdeError, match="KeyError: 'negative'"):
        JsonSerde(Strict).deserialize("t", b'{"id":-1}')


def test_another_type_is_not_written() -> None:
    with pytest.raises(SerdeError, match=r"JsonSerde\(Line\) cannot write {'article': 'pen'} .* expected Line"):
        JsonSerde(Line).serialize("t", {"article": "pen"})  # type: ignore[arg-type]


def test_what_json_does_not_have_is_refused() -> None:
    with pytest.raises(SerdeError, match=r"JsonSerde\(\) cannot write {1, 2} .* Type is not JSON serializable: set"):
        JsonSerde().serialize("t", {1, 2})


def test_pydantic_models_come_back_by_their_aliases() -> None:
    serde = JsonSerde(Model)
    model = Model(id=1, full_name="Ann")

    assert serde.serialize("t", model) == b'{"id":1,"full_name":"Ann"}'
    assert serde.deserialize("t", serde.serialize("t", model)) == model
    with pytest.raises(SerdeError, match="ValidationError"):
        serde.deserialize("t", b'{"id":"x"}')


def test_msgspec_structs_come_back() -> None:
    serde = JsonSerde(Struct)

    assert serde.deserialize("t", serde.serialize("t", Struct(1, "Ann"))) == Struct(1, "Ann")
    with pytest.raises(SerdeError, match="ValidationError: Expected `int`, got `str`"):
        serde.deserialize("t", b'{"id":"x"}')


STRICT, SHELF = StrictModel(at=datetime(2026, 5, 1), shares=(Decimal("0.5"),)), Shelf({7: "Emma"})


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (StrictModel, STRICT),
        (list[StrictModel], [STRICT]),
        (StrictModel | int, STRICT),
        (Shelf, SHELF),
        (list[Shelf], [SHELF]),
        (Shelf | int, SHELF),
    ],
)
def test_models_and_structs_inside_of_others_are_read_as_by_themselves(type_: Any, value: object) -> None:
    serde: JsonSerde[Any] = JsonSerde(type_)

    assert serde.deserialize("t", serde.serialize("t", value)) == value


def test_combinations_of_types_are_made() -> None:
    serde = JsonSerde(list[Line | None])

    assert serde.deserialize("t", b'[{"article":"a","price":1},null]') == [Line("a", 1.0), None]
    assert JsonSerde(dict[str, tuple[int, ...]]).deserialize("t", b'{"a":[1,2]}') == {"a": (1, 2)}
    assert JsonSerde(dict).deserialize("t", b'{"a":1}') == {"a": 1}
    assert JsonSerde(tuple).deserialize("t", b"[1]") == (1,)
    assert JsonSerde(bool).deserialize("t", b"true") is True


def test_typed_dicts_and_numbers_are_written() -> None:
    assert JsonSerde(Place).serialize("t", {"city": "Bonn"}) == b'{"city":"Bonn"}'
    assert JsonSerde(Place).deserialize("t", b'{"city":"Bonn"}') == {"city": "Bonn"}
    assert JsonSerde(float).deserialize("t", JsonSerde(float).serialize("t", 5)) == 5.0


def test_other_functions_can_write_and_read() -> None:
    serde = JsonSerde(Line, dumps=lambda line: json.dumps(vars(line)), loads=json.loads)

    assert serde.serialize("t", Line("pen", 1.5)) == b'{"article": "pen", "price": 1.5, "gift": false}'
    assert serde.deserialize("t", b'{"article": "pen", "price": 1.5}') == Line("pen", 1.5)


def test_functions_of_the_user_may_write_and_read_bytes() -> None:
    serde = JsonSerde(Raw, dumps=msgspec.msgpack.encode, loads=msgspec.msgpack.decode)

    assert serde.deserialize("t", serde.serialize("t", Raw(b"\xff"))) == Raw(b"\xff")


@pytest.mark.parametrize("type_", [Raw, list[bytes], tuple[bytes, ...]])
def test_keys_refuse_bytes_as_values_do(type_: Any) -> None:
    with pytest.raises(TypeError, match="JSON has no bytes"):
        JsonKeySerde(type_)


@pytest.mark.parametrize(("type_", "value"), [(Model, Model(id=1, full_name="A")), (Struct, Struct(1, "A"))])
def test_another_reader_works_with_models_too(type_: Any, value: Any) -> None:
    serde = JsonSerde(type_, loads=json.loads)

    assert serde.deserialize("t", serde.serialize("t", value)) == value


@pytest.mark.parametrize("type_", [None, Order, Line | None, Place, Model, Struct, list[Line], dict, int, State])
@pytest.mark.parametrize("text", [b"null", b" null\n"])
def test_the_text_null_is_none(type_: Any, text: bytes) -> None:
    assert JsonSerde(type_).deserialize("t", text) is None


def test_the_text_null_is_none_in_keys_too() -> None:
    assert JsonKeySerde(Line).deserialize("t", b"null") is None


def test_null_is_what_a_type_makes_of_it_where_it_takes_it() -> None:
    assert JsonSerde(Perhaps).deserialize("t", b"null") == Perhaps(None)


def test_null_inside_is_refused_where_its_type_does_not_have_it() -> None:
    with pytest.raises(SerdeError, match=r"\[0\]: expected Line, got None"):
        JsonSerde(list[Line]).deserialize("t", b"[null]")


def test_a_field_with_an_underscore_is_refused_because_it_would_be_lost() -> None:
    with pytest.raises(TypeError, match=r"field Hidden._secret is not written to JSON because of its underscore"):
        JsonSerde(Hidden)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (
            Unreadable,
            "field Unreadable.codec: values of type complex cannot be made from plain ones (text, numbers, lists, "
            "dicts); take those, or give Unreadable a serde of your own, types.register(Unreadable, serde)",
        ),
        (
            Raw,
            "field Raw.data: JSON has no bytes; take str, such as their base64, or give Raw a serde of your own, "
            "types.register(Raw, serde)",
        ),
        (
            dict[str, list[bytes]],
            "JSON has no bytes; take str, such as their base64, or give dict[str, list[bytes]] a serde of your own, "
            "types.register(dict[str, list[bytes]], serde)",
        ),
        (
            list[complex],
            "values of type complex cannot be made from plain ones (text, numbers, lists, dicts); take those, or give "
            "list[complex] a serde of your own, types.register(list[complex], serde)",
        ),
        (
            dict[int, Line],
            "the keys of dict[int, Line] are no text, which those of objects in JSON are; take dict[str, Line], or "
            "give dict[int, Line] a serde of your own, types.register(dict[int, Line], serde)",
        ),
    ],
)
def test_a_type_that_cannot_be_made_is_refused_at_once_with_the_cure(type_: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        JsonSerde(type_)


def test_text_of_a_type_of_its_own_may_be_the_keys_of_an_object() -> None:
    assert JsonSerde(dict[Name, int]).deserialize("t", b'{"a":1}') == {Name("a"): 1}


def test_fields_of_a_typed_dict_are_made_and_others_are_kept() -> None:
    serde = JsonSerde(Trip)
    trip: Trip = {"city": "Bonn", "since": datetime(2026, 1, 2, tzinfo=UTC), "lines": [Line("pen", 1.5)]}

    assert serde.deserialize("t", serde.serialize("t", trip)) == trip
    assert serde.deserialize("t", b'{"city":"Bonn","new":1}') == {"city": "Bonn", "new": 1}
    with pytest.raises(SerdeError, match=r"lines\[0\]: expected Line, got 5"):
        serde.deserialize("t", b'{"lines":[5]}')


class Parcel(Place):
    weight: float
    note: NotRequired[str]
    shown: Annotated[NotRequired[str], "on the label"]


class Return(Parcel, total=False):
    reason: Required[str]
    refund: float


class Label(TypedDict):
    city: str
    since: NotRequired[datetime]


PARCEL: dict[str, object] = {"city": "Bonn", "weight": 1.5}


@pytest.mark.parametrize(
    ("type_", "read", "missing"),
    [
        (Place, {}, "city"),
        (Parcel, {"city": "Bonn"}, "weight"),
        (Parcel, {"weight": 1.5, "note": "x"}, "city"),
        (Return, PARCEL, "reason"),
        (Return, {"city": "Bonn", "reason": "late"}, "weight"),
        (list[Place], [{"city": "Bonn"}, {"town": "Bonn"}], r"\[1\].city"),
    ],
)
@pytest.mark.parametrize("serde_of", [JsonSerde, JsonKeySerde])
def test_a_typed_dict_without_a_required_field_is_refused(
    type_: Any, read: object, missing: str, serde_of: Any
) -> None:
    with pytest.raises(SerdeError, match=f"MismatchError: {missing}: is missing, and has no default"):
        serde_of(type_).deserialize("t", orjson.dumps(read))


@pytest.mark.parametrize(
    ("type_", "read"), [(Trip, {}), (Parcel, PARCEL), (Return, PARCEL | {"reason": "late"}), (Place | None, None)]
)
def test_a_typed_dict_may_be_without_the_fields_that_are_not_required(type_: Any, read: object) -> None:
    assert JsonSerde(type_).deserialize("t", orjson.dumps(read)) == read


def test_a_field_that_is_not_required_tells_no_typed_dict_from_another() -> None:
    either: Any = Label | Line
    serde = JsonSerde(either)

    assert serde.deserialize("t", b'{"city":"Bonn"}') == {"city": "Bonn"}
    assert serde.deserialize("t", b'{"article":"pen","price":1}') == Line("pen", 1.0)


def test_a_hidden_field_of_what_is_inside_is_refused_too() -> None:
    with pytest.raises(TypeError, match=r"field Hidden._secret is not written to JSON because of its underscore"):
        JsonSerde(dict[str, list[Hidden]])


@pytest.mark.parametrize("value", [Model(id=1, full_name="Ann"), Struct(1, "Ann")])
def test_models_and_structs_inside_of_other_values_are_written_and_read(value: Any) -> None:
    type_: Any = list[type(value)]  # type: ignore[misc]
    serde = JsonSerde(type_)

    assert serde.deserialize("t", serde.serialize("t", [value])) == [value]
    with pytest.raises(SerdeError, match=r"\[0\]: "):
        serde.deserialize("t", b'[{"id":"x"}]')


def test_names_in_messages() -> None:
    assert (repr(JsonSerde()), repr(JsonSerde(Order))) == ("JsonSerde()", "JsonSerde(Order)")


@pytest.mark.parametrize(("raw", "read"), [(b'"9.50"', "9.50"), (b"9", "9"), (b"9.5", "9.5")])
def test_a_decimal_number_is_read_from_text_and_from_numbers(raw: bytes, read: str) -> None:
    assert JsonSerde(Decimal).deserialize("topic", raw) == Decimal(read)


@pytest.mark.parametrize("raw", [b'"nine"', b"true", b"[]"])
def test_what_is_no_decimal_number_is_refused(raw: bytes) -> None:
    with pytest.raises(SerdeError, match="expected Decimal, got"):
        JsonSerde(Decimal).deserialize("topic", raw)


def test_a_decimal_number_is_written_as_text_so_that_no_digit_is_lost() -> None:
    number = Decimal("0.1000000000000000000000000001")
    serde = JsonSerde(list[Decimal])

    assert serde.serialize("topic", [number]) == b'["0.1000000000000000000000000001"]'
    assert serde.deserialize("topic", serde.serialize("topic", [number])) == [number]


@pytest.mark.parametrize("member", [*Span, *Rate, *Holiday, *State])
@pytest.mark.parametrize("serde_of", [JsonSerde, JsonKeySerde])
def test_members_of_enumerations_are_read_by_the_json_of_their_values(member: Enum, serde_of: Any) -> None:
    for type_, value in (
        (type(member), member),
        (list[type(member)], [member]),  # type: ignore[misc]
        (type(member) | None, member),
        (Literal[member], member),
    ):
        serde = serde_of(type_)

        assert serde.deserialize("t", serde.serialize("t", value)) == value


def test_a_value_of_no_member_is_refused() -> None:
    with pytest.raises(SerdeError, match="expected Holiday, got '2024-05-02'"):
        JsonSerde(Holiday).deserialize("t", b'"2024-05-02"')
    with pytest.raises(SerdeError, match=r"expected Span, got \['2024-05-01', 2\]"):
        JsonSerde(Span).deserialize("t", b'["2024-05-01",2]')


def test_members_that_are_text_in_json_are_not_told_from_text() -> None:
    with pytest.raises(TypeError, match="Holiday and str cannot be told apart in JSON"):
        JsonSerde(Holiday | str)  # type: ignore[arg-type]


BARE: list[tuple[Any, object]] = [
    (typing.List, [1, "a", None]),  # noqa: UP006
    (typing.Sequence, [1, "a", None]),
    (list, [1, "a", None]),
    (Sequence, [1, "a", None]),
    (typing.Tuple, (1, "a", None)),  # noqa: UP006
    (tuple, (1, "a", None)),
    (typing.Dict, {"a": 1, "b": None}),  # noqa: UP006
    (typing.Mapping, {"a": 1, "b": None}),
    (dict, {"a": 1, "b": None}),
    (Mapping, {"a": 1, "b": None}),
]


@pytest.mark.parametrize(("bare", "value"), BARE)
@pytest.mark.parametrize("serde_of", [JsonSerde, JsonKeySerde])
def test_containers_without_types_hold_anything(bare: Any, value: object, serde_of: Any) -> None:
    holder: Any = make_dataclass("Holder", [("held", bare)])
    for type_, one in ((bare, value), (holder, holder(value)), (list[bare], [value]), (bare | None, value)):
        serde = serde_of(type_)

        assert serde.deserialize("t", serde.serialize("t", one)) == one


@pytest.mark.parametrize("bare", [bare for bare, _ in BARE])
def test_what_is_no_container_of_that_kind_is_refused(bare: Any) -> None:
    with pytest.raises(SerdeError, match=r"MismatchError: expected \w+, got 5"):
        JsonSerde(bare).deserialize("t", b"5")


@pytest.mark.parametrize("bare", [typing.Set, set])  # noqa: UP006
def test_sets_are_refused_when_the_serde_is_made(bare: Any) -> None:
    holder = make_dataclass("Holder", [("held", bare)])

    with pytest.raises(TypeError, match=r"field Holder\.held: values of type (S|s)et cannot be made from plain ones"):
        JsonSerde(holder)


@dataclass
class Opening:
    at: time
    since: datetime | None = None


@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=-5)), timezone(timedelta(hours=2, seconds=30))])
def test_times_of_day_come_back_with_their_time_zone(zone: timezone | None) -> None:
    serde, opening = JsonSerde(Opening), Opening(time(9, 30, tzinfo=zone))
    read = serde.deserialize("t", serde.serialize("t", opening))

    assert read == opening
    assert read is not None
    assert read.at.utcoffset() == opening.at.utcoffset()


def test_times_beside_a_time_with_a_zone_are_written_as_before() -> None:
    for since in (datetime(2024, 5, 1, 12, 30, 0, 5), datetime(2024, 5, 1, tzinfo=UTC), datetime(9, 1, 1)):
        alone = orjson.dumps(Opening(time(9, 30, 1, 7), since))

        assert JsonSerde(Opening).serialize("t", Opening(time(9, 30, 1, 7, UTC), since)) == alone.replace(
            b"09:30:01.000007", b"09:30:01.000007+00:00"
        )


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63)])
def test_whole_numbers_of_64_bits_come_back(number: int) -> None:
    for serde_of in (JsonSerde, JsonKeySerde):
        serde: Any = serde_of(Whole)

        assert serde.deserialize("t", serde.serialize("t", Whole(number))) == Whole(number)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_whole_numbers_beyond_64_bits_are_refused(number: int) -> None:
    for serde_of in (JsonSerde, JsonKeySerde):
        serde: Any = serde_of(Whole)

        with pytest.raises(SerdeError, match="Integer exceeds 64-bit range"):
            serde.serialize("t", Whole(number))
    with pytest.raises(SerdeError, match="number: expected int, got"):
        JsonSerde(Whole).deserialize("t", b'{"number":%d}' % number)


def test_whole_numbers_beyond_64_bits_come_back_in_models() -> None:
    for type_ in (LargeModel, LargeStruct):
        serde: Any = JsonSerde(type_)
        value = type_(number=2**70)

        assert serde.deserialize("t", serde.serialize("t", value)) == value
