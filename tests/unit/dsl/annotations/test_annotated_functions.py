"""What annotations say of functions of all kinds, and the words for those that say nothing."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, MutableSequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NewType, NoReturn, Optional, Self, TypeVar, overload

import pytest
import typing_extensions

from pykstreams import (
    KeyValue,
    Processor,
    Record,
    StreamsBuilder,
    StreamsConfig,
)
from pykstreams.dsl.annotations.inference import (
    aggregate_serde,
    awaited_serde,
    fixed_key_processor_serde,
    pair_serdes,
    pairs_serdes,
    processor_serdes,
    shown_function,
    transformer_serde,
    value_serde,
    values_serde,
)
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault
from pykstreams.topology.checks.missing_serdes import missing_serdes

if TYPE_CHECKING:
    from decimal import Decimal as Missing

T = TypeVar("T")
P = TypeVar("P")

Amount = NewType("Amount", int)


@dataclass
class Order:
    amount: int

    @classmethod
    def of(cls, value: object) -> Self:
        return cls(1)

    def again(self, value: object) -> Self:
        return self


@dataclass
class Box(Generic[T]):
    item: T


class Kind(Enum):
    WEB = "web"


Orders = typing_extensions.TypeAliasType("Orders", list[Order])
Pairs = typing_extensions.TypeAliasType("Pairs", list[tuple[str, P]], type_params=(P,))


def wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: object, **named: object) -> object:
        return function(*args, **named)

    return wrapper


def order(value: object, more: int = 0) -> Order:
    return Order(more)


class Maker:
    def of(self, value: object) -> Order:
        return Order(1)

    @functools.cache  # noqa: B019 - as users write it
    def cached(self, value: object) -> Order:
        return Order(1)

    @classmethod
    def of_class(cls, value: object) -> Order:
        return Order(1)

    @staticmethod
    def of_nothing(value: object) -> Order:
        return Order(1)

    def __call__(self, value: object) -> Order:
        return Order(1)

    of_more = functools.partialmethod(of)


class CachedMaker:
    @functools.lru_cache(maxsize=8)  # noqa: B019 - as users write it
    def __call__(self, value: object) -> Order:
        return Order(1)


@overload
def overloaded(value: int) -> int: ...
@overload
def overloaded(value: str) -> str: ...
def overloaded(value: object) -> Any:
    return value


# as most write it
del overloaded.__annotations__["return"]


def annotated(value: object) -> Annotated[Order, "shown"]:
    return Order(1)


def amount(value: object) -> Amount:
    return Amount(1)


def either(value: object) -> bool | str:
    return True


def perhaps(value: object) -> Order | None:
    return None


def optional(value: object) -> Optional[Order]:  # noqa: UP045 - as users write it
    return None


def literal(value: object) -> Literal["a", "b"]:
    return "a"


def kind(value: object) -> Kind:
    return Kind.WEB


def orders(value: object) -> Orders:
    return []


def pairs(value: object) -> Pairs[int]:
    return []


def annotated_pair(key: object, value: object) -> Annotated[tuple[str, int], "shown"]:
    return "", 1


def key_value(key: object, value: object) -> KeyValue[str, int]:
    return KeyValue("", 1)


ORDERS = "JsonSerde(Order)"


@pytest.mark.parametrize(
    ("function", "serde"),
    [
        (order, ORDERS),
        (functools.cache(order), ORDERS),
        (functools.lru_cache(maxsize=8)(order), ORDERS),
        (wrapping(order), ORDERS),
        (wrapping(functools.cache(wrapping(order))), ORDERS),
        (functools.partial(order, more=1), ORDERS),
        (functools.partial(functools.cache(order), more=1), ORDERS),
        (functools.cache(functools.partial(order, more=1)), ORDERS),
        (functools.partial(functools.partial(Maker()), 1), ORDERS),
        (Maker().of, ORDERS),
        (Maker().cached, ORDERS),
        (Maker.of_class, ORDERS),
        (Maker.of_nothing, ORDERS),
        (Maker().of_more, ORDERS),
        (Maker(), ORDERS),
        (CachedMaker(), ORDERS),
        (functools.cache(Maker()), ORDERS),
        (Order.of, ORDERS),
        (Order(1).of, ORDERS),
        (Order(1).again, ORDERS),
        (functools.cache(Order.of), ORDERS),
        (Order, ORDERS),
        (list[Order], "JsonSerde(list)"),
        (annotated, ORDERS),
        (amount, "LongSerde()"),
        (either, "JsonSerde(bool | str)"),
        (perhaps, ORDERS),
        (optional, ORDERS),
        (literal, "JsonSerde(Literal)"),
        (kind, "JsonSerde(Kind)"),
        (orders, "JsonSerde(list)"),
    ],
)
def test_the_type_that_a_function_returns_is_found(function: Callable[..., object], serde: str) -> None:
    assert repr(value_serde(function)) == serde


def test_aliases_and_what_stands_around_types_are_looked_through_in_pairs() -> None:
    assert repr(values_serde(orders)) == ORDERS
    assert [repr(one) for one in pairs_serdes(pairs)] == [repr(one) for one in pair_serdes(key_value)]
    assert pair_serdes(annotated_pair) == pair_serdes(key_value)


def later(value: object) -> Awaitable[Order]:
    raise AssertionError


def in_a_coroutine(value: object) -> Coroutine[Any, Any, Order]:
    raise AssertionError


async def at_last(value: object) -> Order:
    return Order(1)


@pytest.mark.parametrize("function", [later, in_a_coroutine, at_last, functools.partial(later)])
def test_the_type_is_found_of_what_is_awaited(function: Callable[..., Awaitable[object]]) -> None:
    assert repr(awaited_serde(function)) == ORDERS


def in_a_deque(value: object) -> deque[Order]:
    raise AssertionError


def in_a_set(value: object) -> AbstractSet[Order]:
    raise AssertionError


def in_a_sequence(value: object) -> MutableSequence[Order]:
    raise AssertionError


@pytest.mark.parametrize("function", [in_a_deque, in_a_set, in_a_sequence])
def test_the_type_is_found_of_what_is_in_a_collection(function: Callable[..., Iterable[object]]) -> None:
    assert repr(values_serde(function)) == ORDERS


def anything(value: object) -> Any:
    return value


def an_object(value: object) -> object:
    return value


def never(value: object) -> NoReturn:
    raise AssertionError


def generic(value: T) -> T:
    return value


def generic_list(value: T) -> list[T]:
    return [value]


def bare(value: object) -> object:
    return Box(1)


def text(value: object) -> str:
    return ""


def texts(value: object) -> list[str]:
    return []


def bare_list(value: object) -> object:
    return []


def no_type(value: object) -> list[str]:
    return []


def as_text(value: object) -> list[str]:
    return []


def no_name(value: object) -> object:
    return value


def missing(value: object) -> Missing:
    raise AssertionError


bare.__annotations__["return"] = Box
bare_list.__annotations__["return"] = list
no_type.__annotations__["return"] = [str]
as_text.__annotations__["return"] = "[str]"
no_name.__annotations__["return"] = "functools.No"

CURE = "; correct the annotation, or give a serde"


@pytest.mark.parametrize(
    ("serde_of", "function", "why"),
    [
        (value_serde, lambda value: value, "no annotation says what {} returns"),
        (value_serde, overloaded, "only its overloads say what {} returns; annotate the function itself, too"),
        (value_serde, len, "no annotation says what len returns"),
        (value_serde, str.upper, "no annotation says what str.upper returns"),
        (value_serde, anything, "{} is annotated to return Any, which stands for no serde" + CURE),
        (value_serde, functools.cache(anything), "{} is annotated to return Any, which stands for no serde" + CURE),
        (value_serde, an_object, "{} is annotated to return object, which stands for no serde" + CURE),
        (value_serde, never, "{} is annotated to return NoReturn, which stands for no serde" + CURE),
        (value_serde, generic, "{} is annotated to return T, which stands for no serde" + CURE),
        (value_serde, generic_list, "{} is annotated to return list[T], whose T is not said" + CURE),
        (value_serde, bare, "{} is annotated to return Box, whose T is not said" + CURE),
        (value_serde, Box, "Box is given, whose T is not said; give a serde"),
        (
            value_serde,
            no_type,
            "{} is annotated to return [str], which is no type; correct the annotation, as list[str], or give a serde",
        ),
        (
            value_serde,
            as_text,
            "{} is annotated to return [str], which is no type; correct the annotation, as list[str], or give a serde",
        ),
        (
            value_serde,
            no_name,
            "{} is annotated with 'functools.No', and AttributeError: module 'functools' has no attribute 'No'" + CURE,
        ),
        (
            value_serde,
            missing,
            "{} is annotated with 'Missing', and name 'Missing' is not defined; import Missing at run time, not under "
            "TYPE_CHECKING, or move it to the level of a module, or give a serde",
        ),
        (values_serde, text, "{} is annotated to return str, and list[V] or Iterator[V] is needed" + CURE),
        (values_serde, bare_list, "{} is annotated to return list, and list[V] or Iterator[V] is needed" + CURE),
        (values_serde, anything, "{} is annotated to return Any, which stands for no serde" + CURE),
    ],
)
def test_the_reason_why_an_annotation_says_no_serde(
    serde_of: Callable[[Any], SerdeOrDefault], function: Callable[..., object], why: str
) -> None:
    assert reason(serde_of(function)) == why.format(shown_function(function))


class Untyped(Processor):  # type: ignore[type-arg]  # as users write it who have no type checker
    def process(self, record: Record[Any, Any]) -> None:
        """Forwards nothing."""


def untyped() -> Untyped:
    return Untyped()


def test_the_reason_why_nothing_is_known_of_an_aggregate_is_its_first_aggregator() -> None:
    def added(key: object, value: object, total: object) -> Any:
        return total

    def given() -> int:
        return 0

    silent = lambda: 0  # noqa: E731 - as users write it
    assert reason(aggregate_serde(silent, lambda key, value, total: total)) == (
        f"no annotation says what <lambda> (test_annotated_functions.py:{line_of(silent) + 1}) returns"
    )
    assert reason(aggregate_serde(silent, added, silent)) == (
        f"{shown_function(added)} is annotated to return Any, which stands for no serde{CURE}"
    )
    assert reason(aggregate_serde(given, added)) == "LongSerde()"


def line_of(function: Callable[..., object]) -> int:
    return function.__code__.co_firstlineno


@pytest.mark.parametrize("supplier", [Untyped, untyped, functools.partial(Untyped)])
def test_the_reason_why_nothing_is_known_of_a_processor_is_its_class(supplier: Callable[[], Any]) -> None:
    why = (
        "Untyped does not say the types of what it forwards; derive it from {}[str, Order, Total], with your types, or "
        "give a serde"
    )
    keys, values = processor_serdes(supplier)

    assert reason(keys) == reason(values) == why.format("Processor").replace("Order, Total", "Order, str, Total")
    assert reason(fixed_key_processor_serde(supplier)) == why.format("FixedKeyProcessor")
    assert reason(transformer_serde(supplier)) == why.format("ValueTransformerWithKey")


def test_a_class_without_serde_is_told_to_be_given() -> None:
    told = "set is given, but there is no serde for set; register one, types.register(set, serde), or give a serde"

    assert reason(aggregate_serde(set, lambda key, value, total: total)) == told
    assert reason(value_serde(functools.partial(set))) == told


def test_the_reason_why_nothing_is_known_of_a_processor_may_be_the_function_that_makes_it() -> None:
    made = lambda: Untyped()  # noqa: E731 - as users write it

    keys, values = processor_serdes(made)

    assert reason(keys) == reason(values) == f"no annotation says what {shown_function(made)} returns"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (texts, "{} is annotated to return list[str], and tuple[K, V] is needed" + CURE),
        (text, "{} is annotated to return str, and tuple[K, V] is needed" + CURE),
        (anything, "{} is annotated to return Any, which stands for no serde" + CURE),
        (lambda key, value: value, "no annotation says what {} returns"),
    ],
)
def test_a_pair_is_needed_for_key_and_value(function: Callable[..., object], why: str) -> None:
    key, value = pair_serdes(function)

    assert reason(key) == reason(value) == why.format(shown_function(function))


@pytest.mark.parametrize(("function", "name"), [(text, "str"), (texts, "list[str]"), (bare_list, "list")])
def test_several_pairs_are_needed_for_several_records(function: Callable[..., Iterator[object]], name: str) -> None:
    key, value = pairs_serdes(function)

    assert reason(key) == reason(value)
    assert reason(key) == (
        f"{shown_function(function)} is annotated to return {name}, and list[tuple[K, V]] or Iterator[tuple[K, V]] is "
        f"needed{CURE}"
    )


def test_the_reason_is_told_with_the_step_that_lacks_a_serde() -> None:
    builder = StreamsBuilder()
    no_pair: Any = text_of_two
    builder.table("in", str, str).group_by(no_pair).count().to_stream().to("out")
    plan = builder.build().plan(StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"}))

    told = missing_serdes(plan, StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"}))

    assert f"({shown_function(text_of_two)} is annotated to return str, and tuple[K, V] is needed" in told[0]


def text_of_two(key: str, value: str) -> str:
    return value


def reason(serde: SerdeOrDefault) -> str | None:
    return serde.lacking if isinstance(serde, OverDefault) else repr(serde)
