"""Values of a case: typed JSON on one side, Python values and topic bytes on the other.

Python's ``int`` and ``float`` have no width, the case language has: an ``int`` is its 64-bit long and a
``float`` its double, so narrower numbers are subclasses that say what they are. They are plain numbers
everywhere else.
"""

from __future__ import annotations

import struct
import uuid
from typing import Any, TypeAlias

from tests.conformance.errors import FormatError

Json: TypeAlias = Any
"""Whatever ``json.load`` gives."""

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


class Int(int):
    """A 32-bit integer."""


class Short(int):
    """A 16-bit integer."""


class Float(float):
    """A 32-bit IEEE number."""


def wrap(value: int, bits: int = 64) -> int:
    """Cuts a number to a signed integer of that many bits, as overflowing arithmetic does.

    >>> wrap(2**63)
    -9223372036854775808
    """
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def decode(value: Json) -> Any:
    """Reads a typed value that is written as input of a step.

    >>> decode({"long": 5}), decode({"hex": "00ff"}), decode(None)
    (5, b'\\x00\\xff', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        match kind:
            case "string":
                return content
            case "long":
                return int(content)
            case "int":
                return Int(content)
            case "short":
                return Short(content)
            case "double":
                return float(content)
            case "float":
                return Float(_single(content))
            case "bool":
                return bool(content)
            case "hex":
                return bytes.fromhex(content)
            case "uuid":
                return uuid.UUID(content)
            case "time_windowed" | "session_windowed":
                return windowed(decode(content["key"]), content["start"], content.get("end", LONG_MAX))
    raise FormatError(f"bad value {value!r}")


def windowed(key: Any, start: int, end: int) -> Any:
    """Makes pykstreams' own windowed key."""
    from tests.conformance.api import public

    return public("Windowed")(key, public("Window")(start, end))


def topic_bytes(value: Json) -> bytes | None:
    """Gives the bytes that a typed value of a step has on a topic.

    >>> topic_bytes({"int": 5}).hex(), topic_bytes("a"), topic_bytes(None)
    ('00000005', b'a', None)
    """
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind == "time_windowed":
            return _key_bytes(content) + struct.pack(">q", content["start"])
        if kind == "session_windowed":
            return _key_bytes(content) + struct.pack(">qq", content["end"], content["start"])
    return _bytes(decode(value))


def encode(value: Any) -> Json:
    """Writes a Python value as the typed JSON of an expectation.

    >>> encode(5), encode(Int(5)), encode(1.5), encode([None, "a"])
    ({'long': 5}, {'int': 5}, {'double': 1.5}, {'list': [None, 'a']})
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, Int):
        return {"int": int(value)}
    if isinstance(value, Short):
        return {"short": int(value)}
    if isinstance(value, int):
        return {"long": int(value)}
    if isinstance(value, Float):
        return {"float": float(text(value))}
    if isinstance(value, float):
        return {"double": float(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, uuid.UUID):
        return {"uuid": str(value)}
    if isinstance(value, list):
        return {"list": [encode(item) for item in value]}
    if is_windowed(value):
        window = value.window
        return {"windowed": {"key": encode(value.key), "start": window.start, "end": window.end}}
    raise TypeError(f"a case cannot hold a {type(value).__name__}: {value!r}")


def is_windowed(value: Any) -> bool:
    """Tells whether a value is a windowed key."""
    return hasattr(value, "window") and hasattr(value, "key")


def text(value: Any) -> str:
    """``str(x)`` of FORMAT.md, section 7.

    >>> text(None), text(True), text(3.0), text(b"\\x01"), text(Float(_single(0.1)))
    ('null', 'true', '3.0', '01', '0.1')
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    if is_windowed(value):
        return f"[{text(value.key)}@{value.window.start}/{value.window.end}]"
    raise TypeError(f"a case cannot hold a {type(value).__name__}: {value!r}")


def _single(value: float) -> float:
    """Rounds to the nearest 32-bit number."""
    result: float = struct.unpack(">f", struct.pack(">f", value))[0]
    return result


def _decimal(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Float):  # the shortest decimal that reads back as the same 32-bit number
        plain = next(t for p in range(1, 10) if _single(float(t := f"{float(value):.{p}g}")) == float(value))
    else:
        plain = float.__repr__(value)
    number = float(plain)
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return float.__repr__(number)
    mantissa, _, exponent = f"{number:e}".partition("e")
    for precision in range(17):  # Java's form outside that range: 1.0E7
        mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == number:
            break
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _key_bytes(content: Json) -> bytes:
    key = topic_bytes(content["key"])
    if key is None:
        raise FormatError(f"windowed key without a key: {content!r}")
    return key


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"\x01" if value else b"\x00"
    if isinstance(value, uuid.UUID):
        return str(value).encode()
    for kind, layout in ((Int, ">i"), (Short, ">h"), (int, ">q"), (Float, ">f"), (float, ">d")):
        if isinstance(value, kind):
            return struct.pack(layout, value)
    raise FormatError(f"no bytes for {value!r}")
