"""The requests of serializers to their schema registry before they write the first record to a topic.

A serializer is made with a client that notes what it is asked, and stops where the first bytes would be written. So
subject, schema and references are those of the serializer itself, whatever its settings are.
Invariant: nothing is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NoReturn, Protocol

from pykstreams.serdes.base import bind_serializer

_NOT_FOUND = range(40400, 40500)
"""The error codes of what a registry does not have; a server that is no registry says 404, too."""


class RegistrySchema(Protocol):
    """The used part of ``Schema`` of ``confluent_kafka``."""

    def to_dict(self) -> dict[str, object]:
        """The schema as it is sent to a registry."""
        ...


class RegisteredVersion(Protocol):
    """The used part of ``RegisteredSchema`` of ``confluent_kafka``."""

    @property
    def version(self) -> int | None: ...

    @property
    def schema_id(self) -> int | None: ...


class RegistryClient(Protocol):
    """The used part of ``SchemaRegistryClient`` of ``confluent_kafka``."""

    def config(self) -> Mapping[str, object]:
        """Its settings."""
        ...

    def lookup_schema(
        self, subject_name: str, schema: RegistrySchema, normalize_schemas: bool = ...
    ) -> RegisteredVersion:
        """The schema as it is registered; an error of HTTP 404 if it is not."""
        ...

    def get_versions(self, subject_name: str) -> Sequence[int]:
        """The versions of a subject; an error of HTTP 404, or none, if there is no such subject."""
        ...

    def get_latest_version(self, subject_name: str) -> RegisteredVersion:
        """The latest version of a subject."""
        ...

    def get_latest_with_metadata(
        self, subject_name: str, metadata: dict[str, str], deleted: bool = ...
    ) -> RegisteredVersion:
        """The latest version of a subject that has this metadata."""
        ...

    def get_schema(self, schema_id: int, subject_name: str | None = ...) -> RegistrySchema:
        """The schema with that id."""
        ...

    def test_compatibility_all_versions(self, subject_name: str, schema: RegistrySchema, normalize: bool = ...) -> bool:
        """Whether a schema is compatible with the versions that the level of the subject is about."""
        ...

    def get_compatibility(self, subject_name: str | None = ...) -> str:
        """The level of compatibility of a subject, or that of all."""
        ...


class Wanted(StrEnum):
    """The purpose of the first request of a serializer."""

    REGISTER = "register"
    """Registers its schema, unless it is registered already."""
    LOOK_UP = "auto.register.schemas=false"
    """Looks its schema up, which must be registered."""
    LATEST = "use.latest.version"
    """Writes with the latest version of the subject."""
    LATEST_WITH_METADATA = "use.latest.with.metadata"
    """Writes with the latest version that has some metadata."""
    BY_ID = "use.schema.id"
    """Writes with the schema of some id."""


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """One request for a subject.

    :param schema: ``None`` where the serializer has none, or does not send it.
    :param normalize: ``normalize.schemas``.
    :param metadata, schema_id: what is wanted where ``wanted`` says so.
    :param unregistered: subjects of imported files that the serializer would register first: the schema names their
        versions, which there are not yet.
    :param interrupted: whether the registry failed while the serializer asked it, so that others might have followed.
    """

    wanted: Wanted
    subject: str
    schema: RegistrySchema | None = None
    normalize: bool = False
    metadata: dict[str, str] | None = None
    schema_id: int | None = None
    unregistered: tuple[str, ...] = ()
    interrupted: bool = False


class RegistrySerde(Protocol):
    """A serde whose serializer asks a schema registry."""

    @property
    def client(self) -> RegistryClient:
        """The client of the registry."""
        ...

    def first_requests(self, topic: str) -> list[FirstRequest]:
        """Returns what the first record to a topic asks for, that of imported files first.

        May ask the registry, but changes nothing there. Raises ``ConfigError`` for a serializer that cannot be made,
        and what strategies and the client raise before there is a subject.
        """
        ...


_noted: ContextVar[list[tuple[RegistrySerde, str]] | None] = ContextVar("noted_registry_serdes", default=None)


def registry_serdes(serializer: object, topic: str) -> list[tuple[RegistrySerde, str]]:
    """Returns the serdes with a registry in a serializer or serde, each with the topic that it is told.

    Serdes that have others inside bind them when they are bound, to the topic that these are told (windowed and
    combined keys, lists, pseudo topics of foreign-key joins), so binding finds them all. What a serializer of a user
    calls only when it writes is not found. Raises ``ConfigError`` for an object that cannot serialize.
    """
    found: list[tuple[RegistrySerde, str]] = []
    token = _noted.set(found)
    try:
        bind_serializer(serializer, topic)
    finally:
        _noted.reset(token)
    return found


def is_sought(serde: RegistrySerde, topic: str) -> bool:
    """Notes a serde that is being bound for ``registry_serdes``; ``False`` where it is bound to write."""
    found = _noted.get()
    if found is None:
        return False
    found.append((serde, topic))
    return True


def requests_of(
    make_serializer: Callable[[object], Callable[[object, object], object]],
    client: RegistryClient,
    sample: object,
    context: object,
) -> list[FirstRequest]:
    """Returns what a serializer asks for when it writes a record.

    :param make_serializer: makes it, with the client that it is given.
    :param sample: a value of the class that the serializer wants; what is in it plays no part.
    :param context: ``SerializationContext`` of ``confluent_kafka``, with the topic.
    """
    noting = _NotingClient(client)
    serializer = make_serializer(noting)
    try:
        serializer(sample, context)
    except _NotedError:
        pass
    except Exception:
        if not noting.requests:
            raise
        # the sample was to be written, since its schema was found, and is no value of it
    return noting.requests


class _NotedError(Exception):
    """Ends the work of a serializer that has asked for what it needs."""


@dataclass(frozen=True, slots=True)
class _NoVersion:
    """Stands for an imported file that is not registered."""

    version: int | None = None
    schema_id: int | None = None


class _NotingClient:
    """Stands for the client: notes what would be registered, and stops there; questions go to the client itself."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._imported: str | None = None
        self._unregistered: list[str] = []
        self.requests: list[FirstRequest] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def register_schema_full_response(
        self, subject_name: str, schema: RegistrySchema | None, normalize_schemas: bool = False
    ) -> NoReturn:
        """Notes the schema of the records."""
        self._stop(FirstRequest(Wanted.REGISTER, subject_name, schema, normalize_schemas))

    def register_schema(self, subject_name: str, schema: RegistrySchema, normalize_schemas: bool = False) -> int:
        """Notes the schema of a file that a Protobuf file imports; the serializer looks it up next."""
        self._note(FirstRequest(Wanted.REGISTER, subject_name, schema, normalize_schemas))
        self._imported = subject_name
        return 0

    def lookup_schema(
        self, subject_name: str, schema: RegistrySchema, normalize_schemas: bool = False
    ) -> RegisteredVersion:
        """Looks up a schema: that of the records, or of a file that they import."""
        imported, self._imported = self._imported == subject_name, None
        if not imported:
            self._note(FirstRequest(Wanted.LOOK_UP, subject_name, schema, normalize_schemas))
        try:
            return self._client.lookup_schema(subject_name, schema, normalize_schemas)
        except Exception as error:  # the client has several, and those of its HTTP library
            if not says_not_found(error):
                self.requests[-1] = replace(self.requests[-1], interrupted=True)
                raise _NotedError from error
            if not imported:
                raise _NotedError from error
            self._unregistered.append(subject_name)
            return _NoVersion()

    def get_latest_version(self, subject_name: str, *_: object, **__: object) -> NoReturn:
        """Notes that the latest version is taken."""
        self._stop(FirstRequest(Wanted.LATEST, subject_name))

    def get_latest_with_metadata(
        self, subject_name: str, metadata: dict[str, str], *_: object, **__: object
    ) -> NoReturn:
        """Notes that a version with this metadata is taken."""
        self._stop(FirstRequest(Wanted.LATEST_WITH_METADATA, subject_name, metadata=metadata))

    def get_schema(self, schema_id: int, subject_name: str | None = None, *_: object, **__: object) -> NoReturn:
        """Notes that the schema of an id is taken."""
        self._stop(FirstRequest(Wanted.BY_ID, subject_name or "", schema_id=schema_id))

    def _note(self, request: FirstRequest) -> None:
        self.requests.append(replace(request, unregistered=tuple(self._unregistered)))

    def _stop(self, request: FirstRequest) -> NoReturn:
        self._note(request)
        raise _NotedError


def http_status(error: Exception) -> int | None:
    """The status that a registry answered with; ``None`` where it did not answer."""
    status = getattr(error, "http_status_code", None)
    return status if isinstance(status, int) else None


def says_not_found(error: Exception) -> bool:
    """Whether a registry answered that it has no such subject, version or schema."""
    return getattr(error, "error_code", None) in _NOT_FOUND
