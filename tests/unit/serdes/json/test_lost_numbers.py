"""NaN and infinite numbers, which JSON does not have: they are refused when they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypedDict, cast
from uuid import UUID

import msgspec
import orjson
import pydantic
import pytest

from pykstreams import StreamsBuilder
from pykstreams.core.errors import SerdeError
from pykstreams.core.shown_values import hide_values, show_values
from pykstreams.serdes import JsonSerde
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.lost_numbers import question_of_lost_numbers
from pykstreams.serdes.json.models import json_text
from pykstreams.serdes.json.structured import json_writer
from pykstreams.testing import TopologyTestDriver

CURE = "; have None in a field of float | None, or a text, in its place, or take a serde that has it, as DoubleSerde"


@dataclass
class Mean:
    total: float = 0.0
    note: str | None = None


@dataclass
class Means:
    parts: list[Mean] = field(default_factory=list)
    by_name: dict[str, Mean] = field(default_factory=dict)
    pair: tuple[int, float] = (0, 0.0)
    either: int | float | list[float] = 0
    anything: Any = None
    parent: Means | None = None


class Place(TypedDict):
    height: float | None


class Model(pydantic.BaseModel):
    total: float = 0.0
    note: str | None = None
    parts: list[Mean] = []


class Open(pydantic.BaseModel, extra="allow"):
    note: str | None = None


class Doubled(pydantic.BaseModel):
    half: str = "nan"

    @pydantic.computed_field
    def whole(self) -> float:
        return float(self.half)


class Aliased(pydantic.BaseModel):
    total: float = pydantic.Field(default=0.0, serialization_alias="sum")


class Rooted(pydantic.RootModel[list[float]]):
    pass


class Constants(pydantic.BaseModel, ser_json_inf_nan="constants"):
    total: float = 0.0
    note: str | None = None


class Texts(pydantic.BaseModel, ser_json_inf_nan="strings"):
    total: float = 0.0
    note: str | None = None


class OwnWriter(pydantic.BaseModel):
    total: float = 0.0
    note: str | None = None

    @pydantic.field_serializer("total")
    def write(self, total: float) -> str:
        return str(total)


class Struct(msgspec.Struct):
    total: float = 0.0
    note: str | None = None
    parts: list[Mean] = []


class Row(msgspec.Struct, array_like=True):
    total: float = 0.0


class Renamed(msgspec.Struct, rename="camel"):
    mean_total: float = 0.0


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [
        (Mean, Mean(NAN), "total: JSON has no number nan"),
        (Mean, Mean(-INF), "total: JSON has no number -inf"),
        (Means, Means([Mean(), Mean(INF)]), "parts[1].total: JSON has no number inf"),
        (Means, Means(by_name={"a": Mean(NAN)}), "by_name.a.total: JSON has no number nan"),
        (Means, Means(by_name={"a b": Mean(NAN)}), "by_name['a b'].total: JSON has no number nan"),
        (Means, Means(pair=(1, NAN)), "pair[1]: JSON has no number nan"),
        (Means, Means(either=NAN), "either: JSON has no number nan"),
        (Means, Means(either=[1.0, NAN]), "either[1]: JSON has no number nan"),
        (Means, Means(anything={"x": [None, NAN]}), "anything.x[1]: JSON has no number nan"),
        (Means, Means(anything=Model(total=NAN)), "anything.total: JSON has no number nan"),
        (Means, Means(anything=Texts(total=NAN)), "anything.total: JSON has no number nan"),
        (Means, Means(parent=Means(parent=Means(pair=(0, INF)))), "parent.parent.pair[1]: JSON has no number inf"),
        (Mean | None, Mean(NAN), "total: JSON has no number nan"),
        (list[float], [1.0, INF], "[1]: JSON has no number inf"),
        (dict[str, float], {"a": NAN}, "a: JSON has no number nan"),
        (float | None, NAN, "JSON has no number nan"),
        (Place, {"height": NAN}, "height: JSON has no number nan"),
        (None, {"a": [1, {"b": NAN}]}, "a[1].b: JSON has no number nan"),
        (None, NAN, "JSON has no number nan"),
        (dict, {"a": None, "b": INF}, "b: JSON has no number inf"),
        (Model, Model(total=NAN), "total: JSON has no number nan"),
        (Model, Model(parts=[Mean(NAN)]), "parts[0].total: JSON has no number nan"),
        (Open, Open.model_validate({"total": NAN}), "total: JSON has no number nan"),
        (Doubled, Doubled(), "whole: JSON has no number nan"),
        (Aliased, Aliased(total=NAN), "sum: JSON has no number nan"),
        (Rooted, Rooted([NAN]), "[0]: JSON has no number nan"),
        (list[Model], [Model(total=NAN)], "[0].total: JSON has no number nan"),
        (list[Constants], [Constants(total=NAN)], "[0].total: JSON has no number nan"),
        (Struct, Struct(NAN), "total: JSON has no number nan"),
        (Struct, Struct(parts=[Mean(INF)]), "parts[0].total: JSON has no number inf"),
        (Row, Row(NAN), "[0]: JSON has no number nan"),
        (Renamed, Renamed(NAN), "meanTotal: JSON has no number nan"),
        (list[Struct], [Struct(NAN)], "[0].total: JSON has no number nan"),
    ],
)
def test_a_number_that_json_does_not_have_is_refused_with_its_place_and_the_cure(
    type_: Any, value: object, told: str
) -> None:
    with pytest.raises(SerdeError) as refused:
        JsonSerde(type_).serialize("means", value)

    assert str(refused.value).endswith(f" for topic 'means': LostNumberError: {told}{CURE}")


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [
        (Mean, Mean(NAN), "total: JSON has no number nan"),
        (Means, Means(by_name={"a": Mean(INF)}), "by_name.a.total: JSON has no number inf"),
        (list[float], [INF], "[0]: JSON has no number inf"),
        (dict, {"price": NAN}, "price: JSON has no number nan"),
        (float | None, NAN, "JSON has no number nan"),
        (Model, Model(total=NAN), "total: JSON has no number nan"),
        (Struct, Struct(NAN), "total: JSON has no number nan"),
        (list[Struct], [Struct(NAN)], "[0].total: JSON has no number nan"),
    ],
)
def test_keys_refuse_it_in_the_same_words(type_: Any, value: object, told: str) -> None:
    with pytest.raises(SerdeError) as refused:
        JsonKeySerde(type_).serialize("means", value)

    assert str(refused.value).endswith(f" for topic 'means': LostNumberError: {told}{CURE}")


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Mean, Mean(1.5)),
        (Means, Means([Mean(1.5, "null")], {"null": Mean()}, (1, 2.5), [1.5], {"a": [None]}, Means())),
        (Means, Means(anything={"a": Struct(1.5), "b": Model()})),
        (Place, {"height": None}),
        (Place, {"height": 1.5, "note": None}),
        (Model, Model(total=1.5)),
        (Open, Open.model_validate({"total": 1.5})),
        (Struct, Struct(1.5)),
        (float | None, 1.5),
        (None, {"a": [None, 1.5, "null"]}),
        (Decimal | None, Decimal(1)),
        (list[Decimal], [Decimal("-Infinity")]),
    ],
)
def test_values_without_such_numbers_come_back(type_: Any, value: Any) -> None:
    serde = JsonSerde(type_)
    written = serde.serialize("means", value)

    assert written == JsonSerde(type_, dumps=dumps_of(type_)).serialize("means", value)
    if not (isinstance(value, Means) and value.anything):
        assert serde.deserialize("means", written) == value


def dumps_of(type_: Any) -> Any:
    """A writer that does not look for such numbers."""
    if type_ in (Model, Open):
        return lambda value: value.model_dump_json()
    return msgspec.json.encode if type_ is Struct else json_text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Constants(total=NAN), b'{"total":NaN,"note":null}'),
        (Texts(total=INF), b'{"total":"Infinity","note":null}'),
        (OwnWriter(total=NAN), b'{"total":"nan","note":null}'),
    ],
)
def test_a_model_may_write_it_as_something_else(value: Any, written: bytes) -> None:
    assert JsonSerde(type(value)).serialize("means", value) == written


def test_a_number_of_decimal_digits_is_text_and_may_be_none() -> None:
    serde = JsonSerde(dict[str, Decimal | None])
    read = serde.deserialize("means", serde.serialize("means", {"a": Decimal("NaN"), "b": None}))

    assert read is not None
    assert str(read["a"]) == "NaN"


def test_a_value_of_another_type_than_its_annotation_says_is_asked_by_itself() -> None:
    with pytest.raises(SerdeError, match=r"total\[0\]: JSON has no number nan"):
        JsonSerde(Mean).serialize("means", Mean(cast("float", [NAN])))

    assert JsonSerde(list[float]).serialize("means", cast("list[float]", {"a": None})) == b'{"a":null}'
    means = Means(parts=cast("list[Mean]", [None]))
    assert b'"parts":[null]' in (JsonSerde(Means).serialize("means", means) or b"")


def test_functions_of_the_user_write_what_they_want() -> None:
    assert JsonSerde(Mean, dumps=orjson.dumps).serialize("means", Mean(NAN)) == b'{"total":null,"note":null}'


@dataclass
class Leaf:
    id: UUID
    name: str | None
    kind: Literal["a", "b"]
    counts: dict[str, int | None]
    amount: Decimal | None
    above: Leaf | None = None


@pytest.mark.parametrize("type_", [Leaf, list[Leaf | None], dict[str, Decimal], str | None, tuple[int, str | None]])
def test_types_without_floats_are_never_asked(type_: Any) -> None:
    assert question_of_lost_numbers(type_) is None


def test_values_are_hidden_in_the_message() -> None:
    owner = object()
    hide_values(owner)
    try:
        with pytest.raises(SerdeError, match=r"^JsonSerde\(Mean\) cannot write <Mean hidden> .*: LostNumberError$"):
            JsonSerde(Mean).serialize("means", Mean(NAN))
    finally:
        show_values(owner)


def add(key: str, value: float, mean: Mean) -> Mean:
    return Mean(mean.total + value)


def test_an_aggregate_with_it_is_an_error_of_its_record_and_the_one_before_stays() -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, float).group_by_key().aggregate(Mean, add, materialized="means").to_stream().to("out")
    config = {"processing.exception.handler": "pykstreams:LogAndContinueProcessingExceptionHandler"}

    with TopologyTestDriver(builder.build(), config) as driver:
        topic = driver.create_input_topic("in", str, float)
        for number in (1.0, NAN, 2.0):
            topic.pipe_input("k", number)

        assert driver.create_output_topic("out", str, Mean).read_values() == [Mean(1.0), Mean(3.0)]


@pytest.mark.parametrize("value", [Mean(NAN), Model(total=NAN), Struct(NAN), Model(parts=[Mean(INF)])])
def test_values_that_are_taken_apart_for_a_registry_are_refused_too(value: Any) -> None:
    with pytest.raises(ValueError, match=r"total: JSON has no number (nan|inf)"):
        json_writer(type(value))(value)

    assert json_writer(Mean)(Mean(1.5)) == {"total": 1.5, "note": None}
