"""Keys inside windows, with the bytes of ``WindowKeySchema`` and ``SessionKeySchema`` (4.3.1)::

    time window      {key}{start: 8}
      in a changelog {key}{start: 8}{sequence number: 4}       read only
    session window   {key}{end: 8}{start: 8}

Times are ms, big-endian. A time window's end is not written: the reader adds the window size.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Generic, TypeVar

from pykstreams.core.errors import ConfigError
from pykstreams.core.types import Decoder, Duration, Headers, duration_ms
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes.base import (
    CompiledDeserializer,
    CompiledSerializer,
    Deserializer,
    EncoderOf,
    Serde,
    Serializer,
    bind_deserializer,
    bind_serializer,
    refused_bytes,
    refused_value,
    resolve_serde,
    wrong_type,
)

T = TypeVar("T")

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")
LAST_MS = 2**63 - 1


@dataclass(frozen=True)
class TimeWindowedSerializer(CompiledSerializer[Windowed[T]], Generic[T]):
    """Writes keys inside time windows: the key, then the start of the window."""

    WINDOWED_INNER_SERIALIZER_CLASS: ClassVar[str] = "windowed.inner.serializer.class"

    inner: Serializer[T]

    def encoder(self, topic: str) -> EncoderOf[Windowed[T]]:
        inner = bind_serializer(self.inner, topic)
        pack = _LONG.pack

        def encode(data: Windowed[T] | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                return inner(data.key, headers) + pack(data.window.start)  # type: ignore[operator]
            except AttributeError as error:
                raise wrong_type(repr(self), topic, data, _EXPECTED) from error
            except (TypeError, struct.error) as error:
                raise refused_value(repr(self), topic, data, f"expected {_EXPECTED}") from error

        return encode

    def serialize_base_key(self, topic: str, data: Windowed[T], headers: Headers | None = None) -> bytes:
        """Returns the bytes of the key alone, which choose the partition."""
        return _base_key(self, self.inner, topic, data, headers)

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Checks that the settings name no other inner serde; ``ConfigError`` if they do."""
        _check_inner(self.inner, configs, self.WINDOWED_INNER_SERIALIZER_CLASS, "serializer")

    def close(self) -> None:
        """Closes the inner serializer."""
        _close(self.inner)


@dataclass(frozen=True)
class TimeWindowedDeserializer(CompiledDeserializer[Windowed[T]], Generic[T]):
    """Reads keys inside time windows of one size; with ``changelog`` those of a window store's changelog.

    No bytes and empty bytes are ``None``. Raises ``ValueError`` for a window size below 1 ms.
    """

    WINDOW_SIZE_MS_CONFIG: ClassVar[str] = "window.size.ms"
    WINDOWED_INNER_DESERIALIZER_CLASS: ClassVar[str] = "windowed.inner.deserializer.class"

    inner: Deserializer[T]
    window_size: Duration
    _: KW_ONLY
    changelog: bool = False

    def __post_init__(self) -> None:
        if self.window_size_ms < 1:
            raise ValueError(f"window size is {self.window_size!r}; it must be at least 1 ms")

    @property
    def window_size_ms(self) -> int:
        """``window_size`` in ms."""
        return duration_ms(self.window_size, "window size")

    def decoder(self, topic: str) -> Decoder:
        inner = bind_deserializer(self.inner, topic)
        unpack, size = _LONG.unpack, self.window_size_ms
        key_end, start_end = (-12, -4) if self.changelog else (-8, None)

        def decode(data: bytes | None, headers: Headers) -> Windowed[object] | None:
            if not data:
                return None
            try:
                start = unpack(data[key_end:start_end])[0]
                end = min(start + size, LAST_MS)
                if end <= start:
                    raise ValueError(f"window start is {start}, which leaves no room for a window")
                window = Window(start, end)
            except (struct.error, ValueError, TypeError) as error:
                raise refused_bytes(repr(self), topic, data, f"no key in a time window: {error}") from error
            return Windowed(inner(data[:key_end], headers), window)

        return decode

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Checks that the settings name no size and no other inner serde; ``ConfigError`` if they do."""
        if configs.get(self.WINDOW_SIZE_MS_CONFIG) is not None:
            raise ConfigError(
                f"{self.WINDOW_SIZE_MS_CONFIG} is {configs[self.WINDOW_SIZE_MS_CONFIG]!r}, and the "
                f"deserializer was made with {self.window_size!r}; remove the setting"
            )
        _check_inner(self.inner, configs, self.WINDOWED_INNER_DESERIALIZER_CLASS, "deserializer")

    def close(self) -> None:
        """Closes the inner deserializer."""
        _close(self.inner)


@dataclass(frozen=True)
class SessionWindowedSerializer(CompiledSerializer[Windowed[T]], Generic[T]):
    """Writes keys inside sessions: the key, the end, then the start."""

    WINDOWED_INNER_SERIALIZER_CLASS: ClassVar[str] = "windowed.inner.serializer.class"

    inner: Serializer[T]

    def encoder(self, topic: str) -> EncoderOf[Windowed[T]]:
        inner = bind_serializer(self.inner, topic)
        pack = _TWO_LONGS.pack

        def encode(data: Windowed[T] | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                window = data.window
                return inner(data.key, headers) + pack(window.end, window.start)  # type: ignore[operator]
            except AttributeError as error:
                raise wrong_type(repr(self), topic, data, _EXPECTED) from error
            except (TypeError, struct.error) as error:
                raise refused_value(repr(self), topic, data, f"expected {_EXPECTED}") from error

        return encode

    def serialize_base_key(self, topic: str, data: Windowed[T], headers: Headers | None = None) -> bytes:
        """Returns the bytes of the key alone, which choose the partition."""
        return _base_key(self, self.inner, topic, data, headers)

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Checks that the settings name no other inner serde; ``ConfigError`` if they do."""
        _check_inner(self.inner, configs, self.WINDOWED_INNER_SERIALIZER_CLASS, "serializer")

    def close(self) -> None:
        """Closes the inner serializer."""
        _close(self.inner)


@dataclass(frozen=True)
class SessionWindowedDeserializer(CompiledDeserializer[Windowed[T]], Generic[T]):
    """Reads keys inside sessions; no bytes and empty bytes are ``None``."""

    WINDOWED_INNER_DESERIALIZER_CLASS: ClassVar[str] = "windowed.inner.deserializer.class"

    inner: Deserializer[T]

    def decoder(self, topic: str) -> Decoder:
        inner = bind_deserializer(self.inner, topic)
        unpack = _TWO_LONGS.unpack

        def decode(data: bytes | None, headers: Headers) -> Windowed[object] | None:
            if not data:
                return None
            try:
                end, start = unpack(data[-16:])
                window = Window(start, end)
            except (struct.error, ValueError, TypeError) as error:
                raise refused_bytes(repr(self), topic, data, f"no key in a session: {error}") from error
            return Windowed(inner(data[:-16], headers), window)

        return decode

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Checks that the settings name no other inner serde; ``ConfigError`` if they do."""
        _check_inner(self.inner, configs, self.WINDOWED_INNER_DESERIALIZER_CLASS, "deserializer")

    def close(self) -> None:
        """Closes the inner deserializer."""
        _close(self.inner)


@dataclass(frozen=True)
class TimeWindowedSerde(Generic[T]):
    """Keys inside time windows of one size; ``changelog`` is for reading the changelog of a window store.

    >>> from pykstreams.serdes import StringSerde
    >>> serde = TimeWindowedSerde(StringSerde(), 60_000)
    >>> data = serde.serializer.serialize("topic", Windowed("a", Window(0, 60_000)))
    >>> data
    b'a\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    >>> str(serde.deserializer.deserialize("topic", data))
    '[a@0/60000]'
    """

    inner: Serde[T]
    window_size: Duration
    _: KW_ONLY
    changelog: bool = False

    def __post_init__(self) -> None:
        _refuse_type(self.inner)
        TimeWindowedDeserializer(self.inner.deserializer, self.window_size)

    @property
    def serializer(self) -> TimeWindowedSerializer[T]:
        """The writer of keys in windows."""
        return TimeWindowedSerializer(self.inner.serializer)

    @property
    def deserializer(self) -> TimeWindowedDeserializer[T]:
        """The reader of keys in windows."""
        return TimeWindowedDeserializer(self.inner.deserializer, self.window_size, changelog=self.changelog)


@dataclass(frozen=True)
class SessionWindowedSerde(Generic[T]):
    """Keys inside sessions.

    >>> from pykstreams.serdes import StringSerde
    >>> serde = SessionWindowedSerde(StringSerde())
    >>> str(serde.deserializer.deserialize("t", serde.serializer.serialize("t", Windowed("a", Window(3, 9)))))
    '[a@3/9]'
    """

    inner: Serde[T]

    def __post_init__(self) -> None:
        _refuse_type(self.inner)

    @property
    def serializer(self) -> SessionWindowedSerializer[T]:
        """The writer of keys in windows."""
        return SessionWindowedSerializer(self.inner.serializer)

    @property
    def deserializer(self) -> SessionWindowedDeserializer[T]:
        """The reader of keys in windows."""
        return SessionWindowedDeserializer(self.inner.deserializer)


def _refuse_type(inner: object) -> None:
    """Raises ``TypeError`` for a type in place of the serde that it stands for elsewhere."""
    if isinstance(inner, type) and not hasattr(inner, "deserializer"):
        raise TypeError(f"inner is {inner!r}; expected a serde: Serdes.for_type({inner.__name__}, is_key=True)")


_EXPECTED = "a Windowed with a key that is not None and times of at most 8 bytes"


def _base_key(
    serializer: object, inner: Serializer[T], topic: str, data: Windowed[T], headers: Headers | None
) -> bytes:
    key = bind_serializer(inner, topic)(data.key, headers or ())
    if key is None:
        raise refused_value(repr(serializer), topic, data, f"expected {_EXPECTED}")
    return key


def _check_inner(inner: object, configs: Mapping[str, object], setting: str, side: str) -> None:
    named = configs.get(setting)
    if named is not None and type(wanted := getattr(resolve_serde(named), side)) is not type(inner):
        raise ConfigError(f"{setting} is {named!r}, which gives {wanted!r}, and the {side} was made with {inner!r}")


def _close(inner: object) -> None:
    if callable(close := getattr(inner, "close", None)):
        close()
