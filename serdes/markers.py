"""Types that say more than Python's: Java's other widths of numbers, and Avro, for annotations."""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypeVar

from pykstreams.serdes.avro import AvroSchema, AvroSerde, schema_name
from pykstreams.serdes.base import Serde
from pykstreams.serdes.primitives import FloatSerde, IntegerSerde, ShortSerde

T = TypeVar("T")

Int16: TypeAlias = Annotated[int, ShortSerde()]
"""A 2-byte integer, Java's short."""

Int32: TypeAlias = Annotated[int, IntegerSerde()]
"""A 4-byte integer, Java's int."""

Float32: TypeAlias = Annotated[float, FloatSerde()]
"""A 4-byte floating-point number, Java's float."""


class Avro:
    """Marks a type as written in Avro without a registry: ``Annotated[Order, Avro(schema)]``; see ``AvroSerde``."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def __repr__(self) -> str:
        return f"Avro({schema_name(self._schema)})"

    def serde_for(self, type_: type[T], /) -> Serde[T]:
        """Returns the serde of values of that type, or of plain dicts where the type is ``dict``."""
        return AvroSerde(self._schema) if type_ is dict else AvroSerde(self._schema, type_=type_)
