"""Serdes with Confluent's wire format, over a schema registry: Avro, JSON Schema and Protobuf.

::

    00 {schema id: 4, big-endian} {payload}        Protobuf has its message indexes in front of the payload

The one module of the serdes that imports ``confluent_kafka``, and only when such a serde is made. Schemas are
registered under ``<topic>-key`` and ``<topic>-value`` when the first record is written. A registry is a URL,
a mapping of settings of ``SchemaRegistryClient``, or such a client; ``mock://<name>`` is a registry in
memory, the same one for everybody in the process who has a serde with that name.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from pykstreams.core.errors import ConfigError
from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import CompiledSerde, refused_bytes, refused_value
from pykstreams.serdes.json.structured import Convert, json_writer, plain_reader, plain_writer
from pykstreams.serdes.registry.first_requests import FirstRequest, RegistryClient, is_sought, requests_of
from pykstreams.serdes.registry.quick_avro import quick_reader, quick_writer
from pykstreams.serdes.registry.registry_address import shown_settings, without_credentials

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

T = TypeVar("T")

Registry: TypeAlias = "str | Mapping[str, Any] | SchemaRegistryClient"
Settings: TypeAlias = Mapping[str, Any]
AvroSource: TypeAlias = "str | Mapping[str, Any] | list[Any] | Schema | None"
JsonSource: TypeAlias = "str | Mapping[str, Any] | Schema"

_mock_registries: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


class SchemaRegistryAvroSerde(CompiledSerde[T], Generic[T]):
    """Avro with a registered schema; values are dicts for records, or of ``type_`` when that is given.

    ``schema`` is a parsed schema or its JSON text; reading needs none, writing needs one or the setting
    ``use.latest.version``. ``is_key`` says that keys are written, which have their own subject.
    ``serializer_config`` and ``deserializer_config`` are the settings of ``confluent_kafka``'s
    ``AvroSerializer`` and ``AvroDeserializer``.
    """

    @overload
    def __init__(
        self: SchemaRegistryAvroSerde[Any],
        registry: Registry,
        schema: AvroSource = None,
        *,
        type_: None = None,
        is_key: bool = False,
        serializer_config: Settings | None = None,
        deserializer_config: Settings | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        registry: Registry,
        schema: AvroSource = None,
        *,
        type_: type[T],
        is_key: bool = False,
        serializer_config: Settings | None = None,
        deserializer_config: Settings | None = None,
    ) -> None: ...

    def __init__(
        self,
        registry: Registry,
        schema: AvroSource = None,
        *,
        type_: type[T] | None = None,
        is_key: bool = False,
        serializer_config: Settings | None = None,
        deserializer_config: Settings | None = None,
    ) -> None:
        avro = _module("avro", "SchemaRegistryAvroSerde", "confluent-kafka[schemaregistry]")
        client = registry_client(registry)
        text = _text(schema)
        take_apart = None if type_ is None else plain_writer(type_)
        make = None if type_ is None else plain_reader(type_)

        def make_serializer(asked: object) -> Any:
            serializer = avro.AvroSerializer(asked, text, _with_context(take_apart), _settings(serializer_config))
            return quick_writer(serializer, text, serializer_config or {}, take_apart)

        def make_deserializer() -> Any:
            deserializer = avro.AvroDeserializer(client, None, _with_context(make), conf=_settings(deserializer_config))
            return quick_reader(deserializer, client, deserializer_config or {}, make)

        self._framing = _Framing("SchemaRegistryAvroSerde", is_key, client, make_serializer, make_deserializer)

    def __repr__(self) -> str:
        return self._framing.name

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Takes over whether keys are written; the runtime calls it for the default serdes."""
        self._framing.is_key = is_key

    def encoder(self, topic: str) -> Encoder:
        return self._framing.encoder(topic)

    def decoder(self, topic: str) -> Decoder:
        return self._framing.decoder(topic)


class SchemaRegistryJsonSerde(CompiledSerde[T], Generic[T]):
    """JSON with a registered JSON Schema, against which it is checked; values are dicts, or of ``type_``.

    ``schema`` is the JSON Schema as a dict or as text. The other parameters are those of
    ``SchemaRegistryAvroSerde``. Needs the packages of ``confluent-kafka[json]``.
    """

    @overload
    def __init__(
        self: SchemaRegistryJsonSerde[Any],
        registry: Registry,
        schema: JsonSource,
        *,
        type_: None = None,
        is_key: bool = False,
        serializer_config: Settings | None = None,
        deserializer_config: Settings | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        registry: Registry,
        schema: JsonSource,
        *,
        type_: type[T],
        is_key: bool = False,
        serializer_config: Settings | None = None,
        deserializer_config: Settings | None = None,
    ) -> None: ...

    def __init__(
        self,
        registry: Registry,
        schema: JsonSource,
        *,
        type_: type[T] | None = None,
        is_key: bool = False,
        serializer_config: Settings | None = None,
        deserializer_config: Settings | None = None,
    ) -> None:
        json_schema = _module("json_schema", "SchemaRegistryJsonSerde", "confluent-kafka[json]")
        client = registry_client(registry)
        take_apart = None if type_ is None else json_writer(type_)
        make = None if type_ is None else plain_reader(type_, of_json=True, refused=(bytes,))
        text = _text(schema)
        self._framing = _Framing(
            "SchemaRegistryJsonSerde",
            is_key,
            client,
            lambda asked: json_schema.JSONSerializer(
                text, asked, _with_context(take_apart), _settings(serializer_config)
            ),
            lambda: json_schema.JSONDeserializer(text, _with_context(make), client, _settings(deserializer_config)),
        )

    def __repr__(self) -> str:
        return self._framing.name

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Takes over whether keys are written; the runtime calls it for the default serdes."""
        self._framing.is_key = is_key

    def encoder(self, topic: str) -> Encoder:
        return self._framing.encoder(topic)

    def decoder(self, topic: str) -> Decoder:
        return self._framing.decoder(topic)


class SchemaRegistryProtobufSerde(CompiledSerde[T], Generic[T]):
    """Protobuf messages of one generated class, with their registered schema.

    The other parameters are those of ``SchemaRegistryAvroSerde``. Needs the extra ``pykstreams[protobuf]``.
    """

    def __init__(
        self,
        registry: Registry,
        message_type: type[T],
        *,
        is_key: bool = False,
        serializer_config: Settings | None = None,
        deserializer_config: Settings | None = None,
    ) -> None:
        protobuf = _module("protobuf", "SchemaRegistryProtobufSerde", "pykstreams[protobuf]")
        client = registry_client(registry)
        self._framing = _Framing(
            f"SchemaRegistryProtobufSerde({message_type.__name__})",
            is_key,
            client,
            lambda asked: protobuf.ProtobufSerializer(message_type, asked, _settings(serializer_config)),
            lambda: protobuf.ProtobufDeserializer(message_type, _settings(deserializer_config), client),
            make_sample=message_type,
        )

    def __repr__(self) -> str:
        return self._framing.name

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Takes over whether keys are written; the runtime calls it for the default serdes."""
        self._framing.is_key = is_key

    def encoder(self, topic: str) -> Encoder:
        return self._framing.encoder(topic)

    def decoder(self, topic: str) -> Decoder:
        return self._framing.decoder(topic)


def registry_client(registry: Registry) -> Any:
    """Returns the client for a URL, settings or a client; every ``mock://`` URL has one, shared while it is in use."""
    if not isinstance(registry, str | Mapping):
        return registry
    from confluent_kafka.schema_registry import SchemaRegistryClient

    settings = {"url": registry} if isinstance(registry, str) else dict(registry)
    url = settings.get("url")
    if not isinstance(url, str):
        raise ConfigError(
            f"schema registry is {shown_settings(settings)}; expected a URL, settings with a 'url', or a client"
        )
    try:
        if not url.startswith("mock://"):
            return SchemaRegistryClient.new_client(settings)
        client = _mock_registries.get(url)
        if client is None:
            client = _mock_registries[url] = SchemaRegistryClient.new_client(settings)
        return client
    except (ValueError, TypeError) as error:
        text = without_credentials(str(error), settings)
        cause = error if text == str(error) else None  # a wrong URL stands in the error as it is
        raise ConfigError(f"schema registry is {shown_settings(settings)}: {text}") from cause


class _Framing:
    """One serializer and one deserializer of ``confluent_kafka``, made at first use, and the calls of them.

    ``make_serializer`` is given the client that the serializer asks; ``make_sample`` makes a value that it does not
    refuse before it asks.
    """

    def __init__(
        self,
        name: str,
        is_key: bool,
        client: RegistryClient,
        make_serializer: Callable[[object], Any],
        make_deserializer: Callable[[], Any],
        *,
        make_sample: Callable[[], object] = object,
    ) -> None:
        self.name = name
        self.is_key = is_key
        self.client = client
        self._make_serializer = make_serializer
        self._make_deserializer = make_deserializer
        self._make_sample = make_sample

    def first_requests(self, topic: str) -> list[FirstRequest]:
        """Returns what a new serializer asks for when it writes a record to a topic."""

        def make(client: object) -> Any:
            return self._made(lambda: self._make_serializer(client))

        return requests_of(make, self.client, self._make_sample(), self._context(topic))

    @cached_property
    def _serializer(self) -> Callable[[object, object], bytes | None]:
        serializer: Callable[[object, object], bytes | None] = self._made(lambda: self._make_serializer(self.client))
        return serializer

    @cached_property
    def _deserializer(self) -> Callable[[bytes, object], object]:
        deserializer: Callable[[bytes, object], object] = self._made(self._make_deserializer)
        return deserializer

    def encoder(self, topic: str) -> Encoder:
        if is_sought(self, topic):  # nothing is written, and a serializer may ask the registry when it is made
            return lambda data, headers: None
        serializer, context, name = self._serializer, self._context(topic), self.name

        def encode(data: object, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                return serializer(data, context)
            except Exception as error:  # schema, registry, network and the user's own conversions
                raise refused_value(name, topic, data, f"{type(error).__name__}: {error}") from error

        return encode

    def decoder(self, topic: str) -> Decoder:
        deserializer, context, name = self._deserializer, self._context(topic), self.name
        make_context, field = type(context), context.field

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            try:
                # a producer may have put the schema's id into the headers
                here = make_context(topic, field, list(headers)) if headers else context
                return deserializer(data, here)
            except Exception as error:  # as above
                raise refused_bytes(name, topic, data, f"{type(error).__name__}: {error}") from error

        return decode

    def _context(self, topic: str) -> Any:
        from confluent_kafka.serialization import MessageField, SerializationContext

        return SerializationContext(topic, MessageField.KEY if self.is_key else MessageField.VALUE)

    def _made(self, make: Callable[[], T]) -> T:
        try:
            return make()
        except Exception as error:  # each format has its own parser with its own errors
            raise ConfigError(f"{self.name} cannot be made: {type(error).__name__}: {error}") from error


def _module(name: str, serde: str, needed: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"confluent_kafka.schema_registry.{name}")
    except ImportError as error:
        raise ConfigError(f"{serde} cannot be used: {error}; run pip install '{needed}'") from error


def _settings(given: Settings | None) -> dict[str, Any]:
    """Names subjects by topic in every release; later ones would ask the registry about associations first."""
    settings = dict(given or {})
    if not settings.keys() & {"subject.name.strategy", "subject.name.strategy.type"}:
        from confluent_kafka.schema_registry import topic_subject_name_strategy

        settings["subject.name.strategy"] = topic_subject_name_strategy
    return settings


def _text(schema: object) -> object:
    return json.dumps(schema) if isinstance(schema, Mapping | list) else schema


def _with_context(convert: Convert | None) -> Callable[[object, object], object] | None:
    """Returns a conversion in the form of ``confluent_kafka``, which also gives it the context."""
    return None if convert is None else lambda value, context: convert(value)
