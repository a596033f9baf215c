"""The function library of FORMAT.md, section 7: a function is named by a string ``name`` or ``name:arg:arg``.

Each maker takes the spec and gives a plain callable; an unknown name raises ``FormatError`` at once, so
that a wrong case never runs half-way. Numbers wrap around as Java's do.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from tests.conformance.errors import FormatError, ThrownError
from tests.conformance.values import LONG_MAX, LONG_MIN, Float, Int, Json, is_windowed, text, wrap

Selector: TypeAlias = Callable[[Any, Any], Any]
Predicate: TypeAlias = Callable[[Any, Any], bool]
Joiner: TypeAlias = Callable[[Any, Any, Any], Any]

_F = TypeVar("_F")

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")


def num(value: Any) -> int:
    """``num(x)``: null is 0, a number is cut to 64 bits, anything else is parsed."""
    if value is None:
        return 0
    if isinstance(value, float):
        return 0 if value != value else int(max(LONG_MIN, min(LONG_MAX, value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return parse_long(text(value))


def parse_long(digits: str) -> int:
    """Reads a decimal integer of 64 bits; ``ValueError`` for anything else."""
    if not _INTEGER.fullmatch(digits) or not LONG_MIN <= int(digits) <= LONG_MAX:
        raise ValueError(f"not a 64-bit integer: {digits!r}")
    return int(digits)


def dnum(value: Any) -> float:
    """``dnum(x)``: the same for doubles."""
    if value is None:
        return 0.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    digits = text(value).strip()
    if not _DECIMAL.fullmatch(digits):
        raise ValueError(f"not a number: {digits!r}")
    return float(digits.rstrip("fFdD") if digits[-1] in "fFdD" else digits)


def split(content: str, separator: str) -> list[str]:
    """Splits at every separator; an empty one stands between all characters."""
    return content.split(separator) if separator else [*content, ""]


def part(value: Any, index: int, separator: str) -> str | None:
    """``part(x, i, sep)``."""
    if value is None:
        return None
    parts = split(text(value), separator)
    if index < 0:
        index += len(parts)
    return parts[index] if 0 <= index < len(parts) else None


def utf16_length(content: str) -> int:
    """Counts UTF-16 units, Java's characters."""
    return len(content.encode("utf-16-le", "surrogatepass")) // 2


# ---------------------------------------------------------------- selectors

_Step: TypeAlias = Callable[[Any, Any, Any], Any]  # (current, key, value)


def selector(spec: Json) -> Selector:
    """A step or a list of steps; the current value starts as the record's value."""
    if spec is None:
        raise FormatError("missing selector")
    steps = [_selector_step(step) for step in ([spec] if isinstance(spec, str) else spec)]

    def select(key: Any, value: Any) -> Any:
        current = value
        for step in steps:
            current = step(current, key, value)
        return current

    return select


def _selector_step(spec: str) -> _Step:
    name, arguments, rest = _parse(spec)
    always: dict[str, _Step] = {
        "key": lambda c, k, v: k,
        "value": lambda c, k, v: v,
        "identity": lambda c, k, v: c,
        "const": lambda c, k, v: rest,
        "const_long": lambda c, k, v: parse_long(arguments[0]),
        "null": lambda c, k, v: None,
        "show": lambda c, k, v: text(c),
        "or_else": lambda c, k, v: rest if c is None else c,
        "concat_key": lambda c, k, v: text(k) + rest + text(c),
        "concat_value": lambda c, k, v: text(c) + rest + text(v),
        "throw": lambda c, k, v: _throw(rest),
        "throw_if_eq": lambda c, k, v: _throw_if(c is not None and text(c) == arguments[0], arguments[1], c),
        "throw_if_null": lambda c, k, v: _throw_if(c is None, rest, c),
    }
    if name in always:
        return always[name]
    if name in ("add", "mul"):
        convert = _arithmetic(name, parse_long(arguments[0]))
    else:
        convert = _conversion(spec, name, arguments, rest)
    return lambda c, k, v: None if c is None else convert(c)


def _conversion(spec: str, name: str, arguments: list[str], rest: str) -> Callable[[Any], Any]:
    steps: dict[str, Callable[[Any], Any]] = {
        "upper": lambda c: text(c).upper(),
        "lower": lambda c: text(c).lower(),
        "append": lambda c: text(c) + rest,
        "prefix": lambda c: rest + text(c),
        "length": lambda c: utf16_length(text(c)),
        "to_string": text,
        "to_long": num,
        "to_int": lambda c: Int(wrap(num(c), 32)),
        "to_double": dnum,
        "to_uuid": lambda c: uuid.UUID(text(c)),
        "part": lambda c: part(c, int(arguments[0]), arguments[1]),
        "null_if_eq": lambda c: None if text(c) == rest else c,
        "null_if_contains": lambda c: None if rest in text(c) else c,
        "null_unless_contains": lambda c: c if rest in text(c) else None,
        "first": lambda c: _first(text(c), int(arguments[0])),
        "window_key": lambda c: _windowed(c).key,
        "window_start": lambda c: _windowed(c).window.start,
        "window_end": lambda c: _windowed(c).window.end,
    }
    if name not in steps:
        raise FormatError(f"unknown selector step {spec!r}")
    return steps[name]


def _arithmetic(name: str, n: int) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return x + n if name == "add" else x * n

    def step(current: Any) -> Any:
        if isinstance(current, Int):
            return Int(wrap(apply(int(current)), 32))
        if isinstance(current, float) and not isinstance(current, Float):
            return float(apply(current))
        return wrap(apply(num(current)))

    return step


def _first(content: str, n: int) -> str:
    return content.encode("utf-16-le", "surrogatepass")[: 2 * n].decode("utf-16-le", "surrogatepass")


def _windowed(value: Any) -> Any:
    if not is_windowed(value):
        raise TypeError(f"not a windowed key: {value!r}")
    return value


# ---------------------------------------------------------------- predicates


def predicate(spec: str) -> Predicate:
    """A test of key and value."""
    name, arguments, rest = _parse(spec)
    tests: dict[str, Predicate] = {
        "true": lambda k, v: True,
        "false": lambda k, v: False,
        "value_contains": lambda k, v: v is not None and rest in text(v),
        "key_contains": lambda k, v: k is not None and rest in text(k),
        "value_eq": lambda k, v: v is not None and text(v) == rest,
        "key_eq": lambda k, v: k is not None and text(k) == rest,
        "value_null": lambda k, v: v is None,
        "value_not_null": lambda k, v: v is not None,
        "key_null": lambda k, v: k is None,
        "key_not_null": lambda k, v: k is not None,
        "value_gt": lambda k, v: v is not None and num(v) > parse_long(rest),
        "value_lt": lambda k, v: v is not None and num(v) < parse_long(rest),
        "value_even": lambda k, v: v is not None and num(v) % 2 == 0,
        "throw": lambda k, v: bool(_throw(rest)),
        "throw_if_value_eq": lambda k, v: bool(
            _throw_if(v is not None and text(v) == arguments[0], arguments[1], True)
        ),
    }
    return _known(tests, name, "predicate", spec)


# ---------------------------------------------------------------- flat maps


def flat_values(spec: str) -> Callable[[Any, Any], list[Any] | None]:
    """A flat map function for values, called with key and value."""
    name, arguments, _ = _parse(spec)
    functions: dict[str, Callable[[Any, Any], list[Any] | None]] = {
        "split": lambda k, v: split(text(v), arguments[0]) if v is not None and text(v) else [],
        "repeat": lambda k, v: [v] * int(arguments[0]),
        "empty": lambda k, v: [],
        "null": lambda k, v: None,
        "key_then_value": lambda k, v: [k, v],
    }
    return _known(functions, name, "flat_map_values function", spec)


def flat_pairs(spec: str) -> Callable[[Any, Any], list[tuple[Any, Any]] | None]:
    """A flat map function for whole records."""
    name, arguments, rest = _parse(spec)
    if name == "split_kv":
        separator, equals = arguments[0], arguments[1]
        pieces = flat_values(f"split:{separator}")
        return lambda k, v: [(part(x, 0, equals), part(x, 1, equals)) for x in pieces(k, v) or ()]
    if name == "both_keys":
        return lambda k, v: [(k, v), (text(k) + rest, v)]
    if name not in ("split", "repeat", "empty", "null"):
        raise FormatError(f"unknown flat_map function {spec!r}")
    values = flat_values(spec)

    def pairs(key: Any, value: Any) -> list[tuple[Any, Any]] | None:
        found = values(key, value)
        return None if found is None else [(key, item) for item in found]

    return pairs


# ---------------------------------------------------------------- joiners, aggregators, reducers, mergers


def joiner(spec: str) -> Joiner:
    """Called with key, left and right."""
    name, _, rest = _parse(spec)
    joiners: dict[str, Joiner] = {
        "concat": lambda k, a, b: text(a) + rest + text(b),
        "concat_with_key": lambda k, a, b: text(k) + rest + text(a) + rest + text(b),
        "sum": lambda k, a, b: wrap(num(a) + num(b)),
        "left": lambda k, a, b: a,
        "right": lambda k, a, b: b,
        "null": lambda k, a, b: None,
        "null_if_left_eq": lambda k, a, b: None if text(a) == rest else text(a) + "+" + text(b),
        "throw": lambda k, a, b: _throw(rest),
    }
    return _known(joiners, name, "joiner", spec)


def initializer(spec: str) -> Callable[[], Any]:
    """Gives the first aggregate of a key."""
    name, _, rest = _parse(spec)
    initializers: dict[str, Callable[[], Any]] = {
        "empty": lambda: "",
        "zero": lambda: 0,
        "zero_int": lambda: Int(0),
        "zero_double": lambda: 0.0,
        "null": lambda: None,
        "const": lambda: rest,
        "const_long": lambda: parse_long(rest),
    }
    return _known(initializers, name, "initializer", spec)


def aggregator(spec: str) -> Joiner:
    """Called with key, value and aggregate."""
    name, arguments, rest = _parse(spec)

    def plain(value: Any, aggregate: Any) -> str:
        return text(value) if aggregate is None else text(aggregate) + text(value)

    aggregators: dict[str, Joiner] = {
        "append": lambda k, v, g: text(v) if g is None else text(g) + rest + text(v),
        "append_with_key": lambda k, v, g: ("" if g is None else text(g)) + text(k) + rest + text(v) + ";",
        "remove": lambda k, v, g: None if g is None else _remove_first(text(g), rest + text(v)),
        "sum": lambda k, v, g: wrap(num(g) + num(v)),
        "subtract": lambda k, v, g: wrap(num(g) - num(v)),
        "sum_double": lambda k, v, g: dnum(g) + dnum(v),
        "max": lambda k, v, g: num(v) if g is None else max(num(g), num(v)),
        "count": lambda k, v, g: wrap(num(g) + 1),
        "uncount": lambda k, v, g: wrap(num(g) - 1),
        "latest": lambda k, v, g: v,
        "null": lambda k, v, g: None,
        "append_null_on": lambda k, v, g: None if text(v) == rest else plain(v, g),
        "append_throw_on": lambda k, v, g: _throw(arguments[1]) if text(v) == arguments[0] else plain(v, g),
    }
    return _known(aggregators, name, "aggregator", spec)


def reducer(spec: str) -> Callable[[Any, Any], Any]:
    """Called with the value so far and the new one."""
    name, _, rest = _parse(spec)
    reducers: dict[str, Callable[[Any, Any], Any]] = {
        "concat": lambda a, b: text(a) + rest + text(b),
        "remove": lambda a, b: _remove_first(text(a), rest + text(b)),
        "sum": lambda a, b: wrap(num(a) + num(b)),
        "subtract": lambda a, b: wrap(num(a) - num(b)),
        "max": lambda a, b: b if num(b) > num(a) else a,
        "min": lambda a, b: b if num(b) < num(a) else a,
        "first": lambda a, b: a,
        "latest": lambda a, b: b,
        "null": lambda a, b: None,
        "null_on": lambda a, b: None if text(b) == rest else text(a) + text(b),
    }
    return _known(reducers, name, "reducer", spec)


def merger(spec: str) -> Joiner:
    """Joins two session aggregates; called with the key and both."""
    name, _, rest = _parse(spec)
    mergers: dict[str, Joiner] = {
        "concat": lambda k, a, b: b if a is None else a if b is None else text(a) + rest + text(b),
        "sum": lambda k, a, b: wrap(num(a) + num(b)),
        "max": lambda k, a, b: max(num(a), num(b)),
        "null": lambda k, a, b: None,
    }
    return _known(mergers, name, "merger", spec)


# ---------------------------------------------------------------- topics, partitions, timestamps


class TopicExtractor:
    """Chooses the topic of a record; its text in ``describe()`` is its spec."""

    def __init__(self, spec: str) -> None:
        name, arguments, rest = _parse(spec)
        extractors: dict[str, Callable[[Any, Any, Any], str]] = {
            "const": lambda k, v, c: rest,
            "prefix_key": lambda k, v, c: rest + text(k),
            "prefix_value_part": lambda k, v, c: arguments[0] + text(part(v, int(arguments[1]), arguments[2])),
            "source_topic_suffix": lambda k, v, c: text(c.topic) + rest,
            "header": lambda k, v, c: _header_text(c.headers, arguments[0], arguments[1]),
        }
        self._spec = spec
        self._extract = _known(extractors, name, "topic extractor", spec)

    def __call__(self, key: Any, value: Any, context: Any) -> str:
        return self._extract(key, value, context)

    def __repr__(self) -> str:
        return self._spec


def partitioner(spec: str) -> Callable[[str, Any, Any, int], Any]:
    """Called with topic, key, value and the number of partitions."""
    name, _, rest = _parse(spec)
    partitioners: dict[str, Callable[[str, Any, Any, int], Any]] = {
        "default": lambda t, k, v, n: None,
        "fixed": lambda t, k, v, n: int(rest),
        "key_length": lambda t, k, v, n: 0 if k is None else utf16_length(text(k)),
        "multi": lambda t, k, v, n: sorted({int(x) for x in rest.split(",")}),
        "num_partitions": lambda t, k, v, n: n,
        "drop": lambda t, k, v, n: (),
    }
    return _known(partitioners, name, "partitioner", spec)


def timestamp_extractor(spec: str) -> Any:
    """Called with the consumer record and the partition time."""
    from tests.conformance.api import public

    name, arguments, rest = _parse(spec)
    built_in = {
        "fail_on_invalid": "FailOnInvalidTimestamp",
        "log_and_skip_on_invalid": "LogAndSkipOnInvalidTimestamp",
        "use_partition_time_on_invalid": "UsePartitionTimeOnInvalidTimestamp",
    }
    if name in built_in:
        return public(built_in[name])()

    def value_part(record: Any, default: int) -> int:
        found = part(record.value, int(arguments[0]), arguments[1])
        return default if found is None else parse_long(found)

    extractors: dict[str, Callable[[Any, int], int]] = {
        "const": lambda record, time: parse_long(rest),
        "add": lambda record, time: wrap(record.timestamp + parse_long(rest)),
        "value_part": lambda record, time: value_part(record, -1),
        "partition_time": lambda record, time: time,
        "value_part_or_partition_time": lambda record, time: value_part(record, time),
    }
    return _known(extractors, name, "timestamp extractor", spec)


# ---------------------------------------------------------------- shared


def thrown_messages(spec: Json) -> set[str]:
    """Collects the messages that the ``throw`` functions anywhere inside a topology can raise."""
    if isinstance(spec, str):
        name, arguments, rest = _parse(spec)
        if name in ("throw", "throw_if_null"):
            return {rest}
        if name in ("throw_if_eq", "throw_if_value_eq", "append_throw_on") and len(arguments) > 1:
            return {arguments[1]}
        return set()
    if isinstance(spec, dict):
        own = {spec["message"]} if "message" in spec else set()
        return own.union(*map(thrown_messages, spec.values()))
    if isinstance(spec, list):
        return set().union(*map(thrown_messages, spec))
    return set()


def _parse(spec: str) -> tuple[str, list[str], str]:
    if not isinstance(spec, str):
        raise FormatError(f"a function is named by a string, not by {spec!r}")
    name, _, rest = spec.partition(":")
    return name, rest.split(":"), rest


def _known(functions: Mapping[str, _F], name: str, kind: str, spec: str) -> _F:
    if name not in functions:
        raise FormatError(f"unknown {kind} {spec!r}")
    return functions[name]


def _header_text(headers: Any, name: str, default: str) -> str:
    found = [value for key, value in headers if key == name]
    return found[-1].decode() if found else default


def _remove_first(content: str, piece: str) -> str:
    return content.replace(piece, "", 1) if piece else content


def _throw(message: str) -> Any:
    raise ThrownError(message)


def _throw_if(condition: bool, message: str, otherwise: Any) -> Any:
    return _throw(message) if condition else otherwise
