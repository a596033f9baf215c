"""Changed types of JSON, in stores, repartition topics and inputs, and what each does to what was written before."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, make_dataclass
from types import GenericAlias
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, KStream, Materialized, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.serdes import JsonSerde
from pykstreams.serdes.by_type import TYPES
from pykstreams.topology.changes.change import Change, Verdict
from pykstreams.topology.changes.comparison import compare, verdict_of
from pykstreams.topology.changes.shape import TopologyShape, shape_from, shape_of

SAFE, RESET = Verdict.SAFE, Verdict.NEEDS_RESET


def kept(type_: Any, *, key: Any = str, serde: Any = None) -> TopologyShape:
    """A store of values of a type by keys of another."""
    config = StreamsConfig({"application.id": "shop"})
    builder = StreamsBuilder()
    stored: Materialized[Any, Any] = Materialized("totals", key_serde=key, value_serde=serde or type_)
    builder.stream("orders", Consumed(key_serde=key, value_serde=Serdes.bytes())).group_by_key().aggregate(
        lambda: None, lambda key, value, total: total, materialized=stored
    )
    return shape_of(builder.build().plan(config), config)


def regrouped(type_: Any) -> TopologyShape:
    """Values of a type in an input, and in a repartition topic."""
    config = StreamsConfig({"application.id": "shop"})
    builder = StreamsBuilder()
    stream = builder.stream("orders", Consumed(key_serde=str, value_serde=type_))
    grouped: Grouped[Any, Any] = Grouped(name="by-item", key_serde=str, value_serde=type_)
    stream.group_by(lambda key, value: "x", grouped).count(materialized=Materialized("counts"))
    return shape_of(builder.build().plan(config), config)


def order(*fields: Any, name: str = "Order") -> type:
    return make_dataclass(name, fields)


WAS = order(("item", str), ("amount", int))


def changes_to(type_: Any) -> tuple[Change, ...]:
    return compare(kept(WAS), kept(type_))


def test_class_with_another_name_and_the_same_fields_is_no_change() -> None:
    assert changes_to(order(("item", str), ("amount", int), name="Sale")) == ()


def test_new_field_with_a_default_is_safe_and_told() -> None:
    (change,) = changes_to(order(("item", str), ("amount", int), ("note", str, field(default=""))))

    assert (change.kind, change.where, change.verdict) == ("new", "totals", SAFE)
    assert change.what == "field Order.note is new; rows without it are read with its default"


def test_new_field_without_a_default_cannot_be_read_of_rows_that_are_there() -> None:
    (change,) = changes_to(order(("item", str), ("amount", int), ("note", str)))

    assert (change.kind, change.where, change.verdict) == ("broken", "totals", RESET)
    assert change.what == "field Order.note is new, and has no default: rows without it cannot be read"
    assert change.cure.startswith("give it a default; or stop all workers")


def test_field_that_is_gone_is_lost_with_the_next_change_of_a_row() -> None:
    (change,) = changes_to(order(("item", str)))

    assert (change.kind, change.verdict) == ("lost", RESET)
    assert change.what == "field Order.amount is gone: what rows have in it is lost with their next change"


def test_renamed_field_is_told_with_the_one_that_may_be_meant() -> None:
    lost, new = changes_to(order(("item", str), ("total", int, field(default=0))))

    assert (lost.kind, new.kind) == ("lost", "new")
    assert lost.what.startswith(
        "field Order.amount is gone (total, which may be meant to be the same, is new): what rows have in it"
    )


def test_field_of_another_type_is_told_with_both_types() -> None:
    (change,) = changes_to(order(("item", str), ("amount", str)))

    assert (change.kind, change.verdict) == ("broken", RESET)
    assert change.what == "field Order.amount was int and is str: rows of the old type may not be read any more"
    assert change.cure.startswith("keep the type, or take one that reads int; or stop all workers")


def test_field_of_a_type_inside_is_told_with_that_type() -> None:
    was = order(("lines", GenericAlias(list, order(("price", int), name="Line"))))
    now = order(("lines", GenericAlias(list, order(("price", int), ("vat", int), name="Line"))))
    (change,) = compare(kept(was), kept(now))

    assert change.what.startswith("field Line.vat is new, and has no default")


def test_any_other_field_of_a_key_gives_it_other_bytes() -> None:
    place = make_dataclass("Place", [("shop", str)], frozen=True)
    floor = make_dataclass("Place", [("shop", str), ("floor", int, field(default=0))], frozen=True)
    store = next(one for one in compare(kept(int, key=place), kept(int, key=floor)) if one.where == "totals")

    assert (store.kind, store.verdict) == ("broken", RESET)
    assert store.what.startswith("field Place.floor is new, in keys: these have other bytes now")


def test_key_type_with_another_name_and_order_of_fields_is_no_change() -> None:
    place = make_dataclass("Place", [("shop", str), ("floor", int)], frozen=True)
    spot = make_dataclass("Spot", [("floor", int), ("shop", str, field(default=""))], frozen=True, kw_only=True)

    assert compare(kept(int, key=place), kept(int, key=spot)) == ()


def test_json_serde_of_keys_has_fields_in_the_order_of_the_type() -> None:
    one, other = (JsonSerde[Any](order(*pairs)) for pairs in ([("a", int), ("b", int)], [("b", int), ("a", int)]))
    changes = [change for change in compare(kept(int, key=one), kept(int, key=other)) if change.where == "totals"]

    assert [change.what.split(",")[0] for change in changes] == ["the fields of Order are in another order"]


def test_type_in_a_repartition_topic_is_compared_and_may_be_waited_for() -> None:
    was, now = order(("item", str)), order(("item", str), ("note", str))
    topic, read = compare(regrouped(was), regrouped(now))

    assert (topic.kind, topic.where, topic.verdict) == ("broken", "by-item-repartition", RESET)
    assert "records in it without it cannot be read" in topic.what
    assert topic.cure.startswith("give it a default; or stop what writes the inputs and let the old one finish")
    assert (read.kind, read.where, read.verdict) == ("moved", "orders", SAFE)
    assert read.what == "field Order.note is new, and has no default, in values"


def test_input_of_fewer_fields_is_no_change() -> None:
    was, now = order(("item", str), ("note", str)), order(("item", str))

    assert [one.where for one in compare(regrouped(was), regrouped(now))] == ["by-item-repartition"]


def test_serde_that_a_user_writes_and_reads_with_functions_is_not_compared() -> None:
    one, other = (JsonSerde[Any](type_, loads=json.loads) for type_ in (WAS, order(("item", str))))

    assert compare(kept(None, serde=one), kept(None, serde=other)) == ()


def test_types_inside_of_other_serdes_are_compared() -> None:
    one, other = (Serdes.list(TYPES.serde(type_)) for type_ in (WAS, order(("item", str))))

    assert [change.kind for change in compare(kept(None, serde=one), kept(None, serde=other))] == ["lost"]


def of_the_release_before(found: TopologyShape) -> TopologyShape:
    """As a release has kept it that knew nothing of types."""
    data = json.loads(json.dumps(found.as_dict()))
    for part in (*data["stores"], *data["repartition_topics"], *data["inputs"]):
        del part["key_types"], part["value_types"]
    return shape_from({**data, "format": 2})


def test_description_of_an_older_release_tells_nothing_of_types_and_that_is_said() -> None:
    (change,) = compare(of_the_release_before(kept(WAS)), kept(order(("item", str))))

    assert (change.kind, change.where, change.verdict) == ("unknown", "totals", SAFE)
    assert "does not tell the fields of types" in change.what


def test_types_are_read_back_from_json() -> None:
    @dataclass
    class Tree:
        name: str
        kind: Any = None

    found = kept(order(("trees", dict[str, list[Tree | None]]), ("pair", tuple[int, str], field(default=(1, "")))))

    assert shape_from(json.loads(json.dumps(found.as_dict()))) == found


def test_damaged_types_are_no_shape() -> None:
    data = json.loads(json.dumps(kept(WAS).as_dict()))
    data["stores"][0]["value_types"]["types"][0]["kind"] = "triangle"

    with pytest.raises(Exception, match="describe --format json"):
        shape_from(data)


def test_verdict_is_the_worst_of_all_fields() -> None:
    assert verdict_of(changes_to(order(("item", str), ("amount", str), ("note", str, field(default=""))))) is RESET


def below_a_filter(type_: Any, *, repartition: bool = False, filtered: bool = True) -> TopologyShape:
    """A store, or a repartition topic, with a generated name, which a filter in front moves."""
    config = StreamsConfig({"application.id": "shop"})
    builder = StreamsBuilder()
    orders: KStream[Any, Any] = builder.stream("orders", Consumed(key_serde=str, value_serde=type_))
    orders = orders.filter(lambda key, value: True) if filtered else orders
    if repartition:
        orders.repartition().foreach(print)
    else:
        orders.group_by_key().reduce(lambda one, other: one)
    return shape_of(builder.build().plan(config), config)


@pytest.mark.parametrize("repartition", [False, True], ids=["store", "repartition topic"])
def test_field_that_is_renamed_while_the_name_of_its_store_moves_is_told_with_it(repartition: bool) -> None:
    old = below_a_filter(order(("pages", int)), repartition=repartition, filtered=False)
    new = below_a_filter(order(("urls", int)), repartition=repartition)
    renamed, *others = [one for one in compare(old, new) if one.where != "orders"]

    assert renamed.kind == "renamed"
    assert {one.where for one in others} == {renamed.where}
    assert any("field Order.pages is gone" in one.what for one in others)
    assert any("field Order.urls" in one.what for one in others)
    assert verdict_of(compare(old, new)) is Verdict.NEEDS_RESET


@pytest.mark.parametrize("repartition", [False, True], ids=["store", "repartition topic"])
def test_name_that_moves_alone_is_told_alone(repartition: bool) -> None:
    old = below_a_filter(order(("pages", int)), repartition=repartition, filtered=False)
    new = below_a_filter(order(("pages", int)), repartition=repartition)

    assert [one.kind for one in compare(old, new)] == ["renamed"]
