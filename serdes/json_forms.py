"""Keys and values as JSON shows them; ``pykstreams.serdes.key_texts`` reads keys back.

Texts, numbers, booleans, lists and dictionaries are themselves; dataclasses, pydantic models, msgspec structs and
protobuf messages objects of their fields; bytes are base64, times ISO 8601, UUIDs and decimals texts, members of an
enumeration their values; not-a-number and infinity are null. A key in a window is ``{"key": ..., "window": {"start":
..., "end": ...}}``, in ms.
"""

from __future__ import annotations

import base64
from decimal import Decimal

import orjson


def json_form(value: object) -> bytes:
    """Writes a value as JSON; ``TypeError`` for one that has no such form, and for integers beyond 64 bits.

    >>> json_form({"id": b"\\x00\\xff"})
    b'{"id":"AP8="}'
    """
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return list(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", by_alias=True)
    if hasattr(value, "__struct_fields__"):
        import msgspec

        return msgspec.to_builtins(value)
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"no form is known for {type(value).__qualname__}")
