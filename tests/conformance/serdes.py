"""Serdes of a case: pykstreams' own, with the width of numbers kept on the Python side.

``Serdes.integer()`` gives a plain ``int``, which the case language reads as a long. The serdes here hand
the bytes to pykstreams' serde, give narrow numbers their type back, and refuse a number of another width,
as a Java cast does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.api import public
from tests.conformance.errors import FormatError
from tests.conformance.values import Float, Int, Short, text


class TypedSerializer:
    """Writes numbers of one width only."""

    def __init__(self, inner: Any, kind: type, name: str) -> None:
        self._inner, self._kind, self._name = inner, kind, name
        self._narrower = {int: (Int, Short, bool), float: (Float,)}.get(kind, ())

    def serialize(self, topic: str, data: Any, headers: Any = None) -> bytes | None:
        """Gives the bytes of the inner serializer."""
        if data is not None and (not isinstance(data, self._kind) or isinstance(data, self._narrower)):
            raise public("SerializationError", "pykstreams.errors")(
                f"value {text(data)!r} of type {type(data).__name__} cannot be written as {self._name}"
            )
        result: bytes | None = self._inner.serialize(topic, data, headers)
        return result


class TypedDeserializer:
    """Reads numbers and gives them their type."""

    def __init__(self, inner: Any, kind: type) -> None:
        self._inner, self._kind = inner, kind

    def deserialize(self, topic: str, data: bytes | None, headers: Any = None) -> Any:
        """Gives the value of the inner deserializer, typed."""
        value = self._inner.deserialize(topic, data, headers)
        return value if value is None else self._kind(value)


class TypedSerde:
    """A number serde of pykstreams whose values are of one width."""

    def __init__(self, inner: Any, kind: type, name: str) -> None:
        self.serializer = TypedSerializer(inner.serializer, kind, name)
        self.deserializer = TypedDeserializer(inner.deserializer, kind)


_NUMBERS: dict[str, type] = {"long": int, "integer": Int, "short": Short, "double": float, "float": Float}


def serde(name: str) -> Any:
    """Gives the serde of section 3 of FORMAT.md with that name."""
    kind, *arguments = name.split(":")
    factories = public("Serdes")
    if kind in _NUMBERS:
        return TypedSerde(getattr(factories, kind)(), _NUMBERS[kind], kind)
    if kind in ("string", "boolean", "bytes", "uuid", "void"):
        return getattr(factories, kind)()
    if kind == "list":
        return factories.list(serde(":".join(arguments)))
    if kind in ("time_windowed", "time_windowed_changelog"):
        inner, size = serde(":".join(arguments[:-1])), int(arguments[-1])
        make: Callable[..., Any] = public("TimeWindowedSerde", "pykstreams.serdes")
        return make(inner, size, changelog=True) if kind.endswith("changelog") else make(inner, size)
    if kind == "session_windowed":
        return public("SessionWindowedSerde", "pykstreams.serdes")(serde(":".join(arguments)))
    raise FormatError(f"unknown serde {name!r}")


def optional_serde(name: str | None) -> Any:
    """The same, ``None`` where a case names none."""
    return None if name is None else serde(name)
