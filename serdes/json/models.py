"""Pydantic models and msgspec structs: how they are recognized, and taken apart where they are inside of other values.

Both libraries are only imported when such a type is given.
"""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, TypeGuard

import orjson

if TYPE_CHECKING:
    import msgspec
    from pydantic import BaseModel


def is_pydantic(type_: object) -> TypeGuard[type[BaseModel]]:
    """Whether a type is a pydantic model."""
    return isinstance(type_, type) and callable(getattr(type_, "model_validate_json", None))


def is_struct(type_: object) -> TypeGuard[type[msgspec.Struct]]:
    """Whether a type is a msgspec struct."""
    return isinstance(type_, type) and hasattr(type_, "__struct_fields__")


def json_text(value: object) -> bytes:
    """Writes what orjson knows, and what ``json_part`` takes apart."""
    return orjson.dumps(value, json_part, orjson.OPT_PASSTHROUGH_DATETIME)


def json_part(value: object) -> object:
    """Takes apart what orjson does not know: models and structs, and a ``Decimal`` as text, which keeps all its digits.

    Times are written here, too, since orjson refuses times of day that have a time zone. Raises ``TypeError`` for
    anything else.
    """
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if is_pydantic(type(value)):
        return value.model_dump(mode="json", by_alias=True)  # type: ignore[attr-defined]
    if is_struct(type(value)):
        import msgspec

        return msgspec.to_builtins(value, str_keys=True)
    raise TypeError(f"Type is not JSON serializable: {type(value).__qualname__}")
