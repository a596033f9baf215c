"""Serdes as protocols, and how they are bound into the compiled path.

``bind_serializer`` and ``bind_deserializer`` decide once, when a task is built, how a serializer is called;
what they return takes ``(data, headers)`` and does nothing but the work. Invariant: whatever goes wrong in a
bound serializer or deserializer, the error is a ``SerializationError``; the serdes here name topic and serde,
``located`` adds partition and offset.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from pykstreams.core.errors import ConfigError, SerdeError, SerializationError, WrongTypeError
from pykstreams.core.references import is_reference, load_reference
from pykstreams.core.shown_values import reason, shown, shown_bytes, shown_text
from pykstreams.core.types import ColumnReader, Decoder, Encoder, Headers

T = TypeVar("T")
T_in = TypeVar("T_in", contravariant=True)
T_out = TypeVar("T_out", covariant=True)

EncoderOf: TypeAlias = Callable[[T | None, Headers], bytes | None]
"""A serializer of values of one type, bound to its topic; an ``Encoder`` takes values of any type."""


class Serializer(Protocol[T_in]):
    """Serializes values. ``configure(configs, is_key)`` and ``close()`` are optional."""

    def serialize(self, topic: str, data: T_in | None, headers: Headers | None = None) -> bytes | None:
        """Serializes ``data``; ``None`` stays ``None`` unless the serializer wants otherwise."""
        ...


class Deserializer(Protocol[T_out]):
    """Deserializes values. ``configure(configs, is_key)`` and ``close()`` are optional."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> T_out | None:
        """Deserializes ``data``; ``None`` stays ``None`` unless the deserializer wants otherwise."""
        ...


@runtime_checkable
class Serde(Protocol[T]):
    """A serializer with its deserializer; any object that has both attributes is one.

    As a base class it makes an object that serializes by itself:

    >>> class HexSerde(Serde[int]):
    ...     def serialize(self, topic, data, headers=None):
    ...         return None if data is None else b"%x" % data
    ...
    ...     def deserialize(self, topic, data, headers=None):
    ...         return None if data is None else int(data, 16)
    >>> HexSerde().serializer.serialize("topic", 255)
    b'ff'
    """

    @property
    def serializer(self) -> Serializer[T]:
        """The writer of keys or values."""
        return cast("Serializer[T]", self)

    @property
    def deserializer(self) -> Deserializer[T]:
        """The reader of keys or values."""
        return cast("Deserializer[T]", self)


AnySerde: TypeAlias = Serde[Any]
"""A serde of which only the user knows the type, as a topology keeps many side by side."""


class CompiledSerializer(ABC, Generic[T_in]):
    """A serializer that gives a closure per topic; all serializers of this package are of this kind.

    ``width`` is how many bytes each value has; ``None`` where that depends on the value.
    """

    @property
    def width(self) -> int | None:
        return None

    def writes_as(self, other: object) -> bool:
        """Returns whether another serializer writes the same bytes for each value, both for whatever topic, and both
        nothing for ``None``.

        ``False`` where that is not known.
        """
        return False

    @abstractmethod
    def encoder(self, topic: str) -> EncoderOf[T_in]:
        """Returns the callable ``(data, headers) -> bytes`` for one topic."""

    def serialize(self, topic: str, data: T_in | None, headers: Headers | None = None) -> bytes | None:
        """Serializes one value; raises ``SerdeError`` for a value of another type."""
        return self.encoder(topic)(data, headers or ())


class CompiledDeserializer(ABC, Generic[T_out]):
    """A deserializer that gives a closure per topic; all deserializers of this package are of this kind."""

    @abstractmethod
    def decoder(self, topic: str) -> Decoder:
        """Returns the callable ``(bytes, headers) -> data`` for one topic."""

    def column_reader(self) -> ColumnReader | None:
        """Returns what reads many values at once and faster, each as ``decoder`` reads it, but that its errors may be
        any, since values of which one cannot be read are read again, one by one.

        ``None`` where that is not known, or where it would call functions or classes of a user, who may see when, and
        how often, they are called. A null is ``None``, and is never given to it.
        """
        return None

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> T_out | None:
        """Deserializes one value; raises ``SerdeError`` for bytes that are none."""
        return cast("T_out | None", self.decoder(topic)(data, headers or ()))


class CompiledSerde(CompiledSerializer[T], CompiledDeserializer[T]):
    """A serde that is its own serializer and deserializer."""

    @property
    def serializer(self) -> Serializer[T]:
        return self

    @property
    def deserializer(self) -> Deserializer[T]:
        return self


def bind_serializer(serializer: object, topic: str) -> Encoder:
    """Returns ``(data, headers) -> bytes`` for a serializer, a serde or a plain ``data -> bytes``.

    A plain callable is not called for ``None``; a serializer object gets it and decides. Errors of both
    become ``SerdeError``. Raises ``ConfigError`` for an object that cannot serialize.
    """
    if isinstance(serializer, CompiledSerializer) and type(serializer).serialize is CompiledSerializer.serialize:
        return serializer.encoder(topic)
    name = describe(serializer)
    if isinstance(serializer, type) and hasattr(serializer, "serialize"):
        raise ConfigError(f"serializer for topic {topic!r} is the class {name}; pass an instance, {name}()")
    if callable(method := getattr(serializer, "serialize", None)):
        return _guarded_encoder(lambda data, headers: method(topic, data, headers), name, topic)
    if (inner := getattr(serializer, "serializer", None)) is not None:
        return bind_serializer(inner, topic)
    if callable(serializer):
        return _guarded_encoder(lambda data, headers: None if data is None else serializer(data), name, topic)
    raise ConfigError(
        f"serializer for topic {topic!r} is {serializer!r}; expected an object with "
        "serialize(topic, data, headers) or a callable data -> bytes"
    )


def bind_deserializer(deserializer: object, topic: str) -> Decoder:
    """Returns ``(bytes, headers) -> data`` for a deserializer, a serde or a plain ``bytes -> data``.

    The counterpart of ``bind_serializer``, with the same rules.
    """
    if (
        isinstance(deserializer, CompiledDeserializer)
        and type(deserializer).deserialize is CompiledDeserializer.deserialize
    ):
        return deserializer.decoder(topic)
    name = describe(deserializer)
    if isinstance(deserializer, type) and hasattr(deserializer, "deserialize"):
        raise ConfigError(f"deserializer for topic {topic!r} is the class {name}; pass an instance, {name}()")
    if callable(method := getattr(deserializer, "deserialize", None)):
        return _guarded_decoder(lambda data, headers: method(topic, data, headers), name, topic)
    if (inner := getattr(deserializer, "deserializer", None)) is not None:
        return bind_deserializer(inner, topic)
    if callable(deserializer):
        return _guarded_decoder(lambda data, headers: None if data is None else deserializer(data), name, topic)
    raise ConfigError(
        f"deserializer for topic {topic!r} is {deserializer!r}; expected an object with "
        "deserialize(topic, data, headers) or a callable bytes -> data"
    )


def column_reader(deserializer: object) -> ColumnReader | None:
    """Returns what reads many values at once for what ``bind_deserializer`` takes; ``None`` where nothing does."""
    if isinstance(deserializer, CompiledDeserializer):
        plain = type(deserializer).deserialize is CompiledDeserializer.deserialize
        return deserializer.column_reader() if plain else None
    if hasattr(deserializer, "deserialize"):
        return None
    inner = getattr(deserializer, "deserializer", None)
    return None if inner is None else column_reader(inner)


def resolve_serde(value: object, *, configs: Mapping[str, object] | None = None, is_key: bool = False) -> AnySerde:
    """Returns the serde that a setting names: an instance, a class, or ``"module:attribute"``.

    With ``configs`` the serde's ``configure(configs, is_key)`` is called, if it has one. Raises
    ``ConfigError`` for anything that is no serde.

    >>> resolve_serde("pykstreams.serdes:LongSerde")
    LongSerde()
    """
    found: object = value
    if isinstance(found, str):
        if not is_reference(found):
            raise ConfigError(f"serde is {value!r}; expected 'module:attribute', such as 'shop.serdes:OrderSerde'")
        try:
            found = load_reference(found)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"serde {value!r} cannot be imported: {error}") from error
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise ConfigError(
                f"serde class {value!r} cannot be made without arguments: {error}; pass an instance"
            ) from error
    if getattr(found, "serializer", None) is None or getattr(found, "deserializer", None) is None:
        raise ConfigError(f"serde is {value!r}; expected an object with the attributes serializer and deserializer")
    if configs is not None and callable(configure := getattr(found, "configure", None)):
        configure(configs, is_key)
    return cast("AnySerde", found)


def write_same_bytes(one: object, other: object) -> bool:
    """Returns whether two serializers (or serdes) write the same bytes for each value, both for whatever topic, and
    both nothing for ``None``.

    ``False`` where that is not known, as for those of users.

    >>> from pykstreams.serdes import Serdes
    >>> write_same_bytes(Serdes.long(), Serdes.long()), write_same_bytes(Serdes.long(), Serdes.integer())
    (True, False)
    """
    one, other = getattr(one, "serializer", one), getattr(other, "serializer", other)
    return isinstance(one, CompiledSerializer) and one.writes_as(other)


def fixed_width(serializer: object) -> int | None:
    """Returns how many bytes a serializer (or serde) writes for each value; ``None`` where that depends on the value.

    It says so by an attribute ``width``; a user's may have one, too.

    >>> from pykstreams.serdes import Serdes
    >>> fixed_width(Serdes.long()), fixed_width(Serdes.string())
    (8, None)
    """
    width = getattr(serializer, "width", None)
    return width if isinstance(width, int) else None


def located(error: Exception, topic: str, partition: int, offset: int) -> SerdeError:
    """Returns the error with the position of the record it happened at; the original is its cause.

    >>> str(located(SerdeError("LongSerde wants 8 bytes", serde="LongSerde()"), "orders", 3, 17))
    'LongSerde wants 8 bytes (record orders-3 at offset 17)'
    """
    if isinstance(error, SerdeError) and error.partition is not None:
        return error
    serde = error.serde if isinstance(error, SerdeError) else None
    text = str(error) or type(error).__name__
    result = SerdeError(
        f"{text} (record {topic}-{partition} at offset {offset})",
        topic=topic,
        partition=partition,
        offset=offset,
        serde=serde,
    )
    result.__cause__ = error
    return result


def wrong_type(serde: str, topic: str, data: object, expected: str) -> WrongTypeError:
    """Makes the error for a value of another type than the serializer takes."""
    return WrongTypeError(str(refused_value(serde, topic, data, f"expected {expected}")), topic=topic, serde=serde)


def refused_value(serde: str, topic: str, data: object, why: str) -> SerdeError:
    """Makes the error for a value that a serializer does not take."""
    return SerdeError(
        f"{serde} cannot write {shown(data)} of type {type(data).__name__} for topic {topic!r}: {reason(why)}",
        topic=topic,
        serde=serde,
    )


def refused_bytes(serde: str, topic: str, data: object, why: str) -> SerdeError:
    """Makes the error for bytes that a deserializer cannot read; the text shows the first of them in hex."""
    return _refused(serde, topic, shown_bytes(data), why)


def refused_text(serde: str, topic: str, data: object, why: str) -> SerdeError:
    """Makes the error for bytes that a deserializer of text does not take; they are shown as text if they are."""
    return _refused(serde, topic, shown_text(data), why)


def _refused(serde: str, topic: str, data: str, why: str) -> SerdeError:
    return SerdeError(f"{serde} cannot read {data} of topic {topic!r}: {reason(why)}", topic=topic, serde=serde)


def describe(serde: object) -> str:
    """Names a serializer, deserializer or function in messages."""
    if isinstance(serde, CompiledSerializer | CompiledDeserializer):
        return repr(serde)
    if isinstance(name := getattr(serde, "__qualname__", None), str):
        return name
    return type(serde).__qualname__


def _guarded_encoder(encode: Encoder, name: str, topic: str) -> Encoder:
    """The door of users' serializers, where any exception can come from."""

    def guarded(data: object, headers: Headers) -> bytes | None:
        try:
            return encode(data, headers)
        except SerializationError:
            raise
        except Exception as error:
            raise refused_value(name, topic, data, _reason(error)) from error

    return guarded


def _guarded_decoder(decode: Decoder, name: str, topic: str) -> Decoder:
    """The door of users' deserializers, where any exception can come from."""

    def guarded(data: bytes | None, headers: Headers) -> object:
        try:
            return decode(data, headers)
        except SerializationError:
            raise
        except Exception as error:
            raise refused_bytes(name, topic, data, _reason(error)) from error

    return guarded


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
