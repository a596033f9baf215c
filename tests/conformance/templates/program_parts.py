"""What random programs are made of: value types, and the functions of the case language that fit them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.conformance.templates.scenario import ValueMaker
from tests.conformance.values import Json

SERDES = {"text": "string", "digits": "string", "long": "long", "integer": "integer", "double": "double"}
"""The serde of each type of value; ``digits`` are texts that can be read as an integer."""

NUMBERS = ("long", "integer", "double")

TEXTS = ["x|3", "y|1", "z|7", "x|5", "y|2,x|4", "z", "", "p,q,r", "x|1,y|9,z|3", "bad", "a|b|c"]
KEYS = ["a", "b", "c", "ab", ""]


@dataclass(frozen=True, slots=True)
class Shape:
    """The types of the keys and values of a stream or table, and which of their serdes the DSL knows."""

    key: str = "text"
    value: str = "text"
    key_known: bool = False
    value_known: bool = False


def value_maker(kind: str) -> ValueMaker:
    """Makes input values of a type."""
    makers: dict[str, ValueMaker] = {
        "text": lambda rng: rng.choice(TEXTS),
        "digits": lambda rng: str(rng.randint(-3, 12)),
        "long": lambda rng: rng.randint(-3, 12),
        "integer": lambda rng: {"int": rng.randint(-3, 12)},
        "double": lambda rng: rng.randint(-8, 30) / 4,
        "mixed": lambda rng: rng.choice([rng.randint(0, 9), "text", {"int": 5}, "", rng.randint(-5, 5)]),
        "stamped": lambda rng: f"{rng.choice('xyz')}|{rng.randint(-1, 60)}",
    }
    return makers[kind]


def keys_of(kind: str) -> list[Any]:
    """Gives the keys to choose from for a type."""
    if kind == "long":
        return [1, 2, 300]
    if kind == "integer":
        return [{"int": 1}, {"int": 2}, {"int": -1}]
    return KEYS


def selector(rng: Random, kind: str, *, with_key: bool = True) -> tuple[str, Json]:
    """Draws a selector for values of a type; gives the type of its result and the selector."""
    text: list[tuple[str, Json]] = [
        ("text", "upper"),
        ("text", "append:!"),
        ("text", "prefix:p"),
        ("text", ["part:0:|", "or_else:none"]),
        ("text", "part:0:|"),
        ("text", "part:-1:|"),
        ("text", "null_if_contains:9"),
        ("text", "null_unless_contains:|"),
        ("text", ["null_if_eq:bad", "append:?"]),
        ("text", "first:2"),
        ("text", "const:z"),
        ("text", "show"),
        ("long", "length"),
        ("text", "null"),
        ("text", "concat_value:/"),
    ]
    if with_key:
        text += [("text", "concat_key:~"), ("text", ["value", "append:-", "concat_key:+"])]
    by_kind: dict[str, list[tuple[str, Json]]] = {
        "text": text,
        "digits": [
            ("digits", "identity"),
            ("long", "to_long"),
            ("long", "add:5"),
            ("integer", "to_int"),
            ("double", "to_double"),
            ("digits", "null_if_eq:7"),
            ("text", "append:!"),
        ],
        "long": [("long", "add:3"), ("long", "mul:-2"), ("long", "null_if_eq:5"), ("digits", "to_string")],
        "integer": [("integer", "add:1"), ("integer", "mul:3"), ("long", "to_long"), ("digits", "to_string")],
        "double": [("double", "add:2"), ("double", "mul:-1"), ("long", "to_long"), ("text", "to_string")],
    }
    return rng.choice(by_kind[kind])


def key_selector(rng: Random, shape: Shape) -> tuple[str, Json]:
    """Draws a selector for a new key; gives its type and the selector."""
    choices: list[tuple[str, Json]] = [(shape.key, "key"), ("text", ["key", "show"])]
    if shape.value in ("text", "digits"):
        choices += [
            ("text", ["value", "part:0:|"]),
            ("text", "value"),
            ("text", ["part:0:|", "null_if_eq:z"]),
            ("long", "length"),
            ("text", ["value", "first:1", "or_else:none"]),
        ]
    else:
        choices += [(shape.value, "value"), ("text", ["value", "show"])]
        if shape.value == "long":
            choices.append(("long", ["value", "mul:0"]))
    kind, spec = rng.choice(choices)
    return ("long", ["value", "to_long"]) if kind == "double" else (kind, spec)


def predicate(rng: Random, shape: Shape) -> str:
    """Draws a predicate."""
    choices = ["value_not_null", "key_not_null", "true", "value_null", "false", "value_eq:5"]
    if shape.value == "text":
        choices += ["value_contains:x", "value_contains:|", "value_eq:z", "value_contains:3"] * 2
    else:
        choices += ["value_gt:3", "value_lt:2", "value_even"] * 2
    if shape.key in ("text", "digits"):
        choices += ["key_contains:a", "key_eq:b"]
    return rng.choice(choices)


def stream_aggregation(rng: Random, kind: str) -> tuple[str, str, str]:
    """Draws (type of the result, initializer, aggregator) for values of a type."""
    choices = [
        ("text", "empty", "append:,"),
        ("text", "const:^", "append_null_on:z"),
        ("text", "empty", "append_with_key:="),
        ("text", "null", "append:-"),
        ("long", "zero", "count"),
        (kind, "null", "latest"),
        ("text", "null", "null"),
        ("text", "empty", "append_null_on:5"),
    ]
    if kind != "text":
        choices += [("long", "zero", "sum"), ("long", "const_long:4", "max"), ("long", "zero", "subtract")]
        choices.append(("double", "zero_double", "sum_double"))
    return rng.choice(choices)


def stream_reducer(rng: Random, kind: str) -> str:
    """Draws a reducer whose result has the type of its arguments."""
    choices = ["first", "latest", "null"]
    if kind == "text":
        choices += ["concat:,", "concat:", "null_on:z", "remove:"] * 2
    elif kind == "digits":
        choices += ["max", "min"] * 2
    else:
        choices += ["max", "min"] + ["sum", "subtract"] * 2 * (kind == "long")
    return rng.choice(choices)


def table_aggregation(rng: Random, kind: str) -> tuple[str, str, str, str]:
    """Draws (type of the result, initializer, adder, subtractor)."""
    choices = [
        ("text", "empty", "append:,", "remove:,"),
        ("text", "const:^", "append:", "remove:"),
        ("long", "zero", "count", "uncount"),
        ("text", "empty", "append:,", "null"),
        ("text", "null", "append:;", "append:-"),
    ]
    if kind != "text":
        choices.append(("long", "zero", "sum", "subtract"))
    return rng.choice(choices)


def table_reducers(rng: Random, kind: str) -> tuple[str, str]:
    """Draws (adder, subtractor) whose results have the type of their arguments."""
    if kind == "long":
        return rng.choice([("sum", "subtract"), ("max", "first"), ("latest", "null")])
    if kind == "text":
        return rng.choice([("concat:,", "remove:,"), ("concat:", "remove:"), ("latest", "first")])
    return rng.choice([("latest", "first"), ("max", "first"), ("latest", "null")])
