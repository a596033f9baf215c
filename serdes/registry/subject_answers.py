"""Whether a schema fits the subject that it would be registered under, as the registry says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeVar
from urllib.parse import quote

from pykstreams.core.errors import ConfigError
from pykstreams.serdes.registry.first_requests import (
    FirstRequest,
    RegistryClient,
    RegistrySchema,
    RegistrySerde,
    Wanted,
    http_status,
    says_not_found,
)
from pykstreams.serdes.registry.registry_address import without_credentials

T = TypeVar("T")

_REFUSED_ACCESS: Final = frozenset({401, 403})
_REFUSED_SCHEMA: Final = frozenset({409, 422})


class Outcome(StrEnum):
    """The result of a question for a subject."""

    REGISTERED = "registered"
    """The schema is registered there."""
    NEW_SUBJECT = "new subject"
    """There is no such subject: the schema would be its first version."""
    NEW_VERSION = "new version"
    """The schema is compatible, and would be the next version."""
    AS_SET = "as set"
    """The settings choose a version that there is, whatever the schema of the serde is."""
    INCOMPATIBLE = "incompatible"
    """The registry would refuse the schema."""
    NOT_REGISTERED = "not registered"
    """The settings want a schema that there is not."""
    NOT_CHECKED = "not checked"
    """No registry could tell."""
    NOT_ASKED = "not asked"
    """This registry did not tell."""

    @property
    def is_bad(self) -> bool:
        """Whether records may not be written, as far as is known."""
        return self in (Outcome.INCOMPATIBLE, Outcome.NOT_REGISTERED, Outcome.NOT_ASKED)


@dataclass(frozen=True, slots=True)
class SubjectAnswer:
    """An outcome, with the version and the id of the schema where it has them.

    :param what: what was found, in words.
    :param reasons: what the registry says against the schema.
    :param cure: what to do; empty where nothing is to be done.
    """

    outcome: Outcome
    what: str = ""
    cure: str = ""
    reasons: tuple[str, ...] = ()
    version: int | None = None
    schema_id: int | None = None


class RegistryDownError(Exception):
    """The registry does not answer, so that it need not be asked again."""


def requests(serde: RegistrySerde, topic: str) -> list[FirstRequest] | SubjectAnswer:
    """Returns what the first record to a topic asks for; an answer where the serializer fails before it asks."""
    try:
        found = serde.first_requests(topic)
    except Exception as error:  # strategies are the user's, and the client has several errors
        if http_status(error) is not None:
            return _refused(serde.client, error)
        return SubjectAnswer(
            Outcome.NOT_ASKED,
            f"the serializer asks for no subject: {_said(serde.client, error)}",
            "see its schema, and subject.name.strategy",
        )
    return found or SubjectAnswer(Outcome.NOT_CHECKED, "the serializer asks for no subject")


def answer(client: RegistryClient, request: FirstRequest) -> SubjectAnswer:
    """Asks a registry what would come of a request; nothing is changed there.

    Raises ``RegistryDownError`` where it does not answer.
    """
    try:
        found = _ANSWERS[request.wanted](client, request)
    except Exception as error:  # the client has several, and those of its HTTP library
        if http_status(error) is None:
            raise RegistryDownError(_said(client, error)) from error
        return _refused(client, error)
    if request.interrupted:
        return SubjectAnswer(Outcome.NOT_ASKED, "the registry failed when it was asked first", "ask again")
    return found


def _said(client: RegistryClient, error: Exception) -> str:
    text = without_credentials(str(error), client.config())
    return text if isinstance(error, ConfigError) else f"{type(error).__name__}: {text}"


def _refused(client: RegistryClient, error: Exception) -> SubjectAnswer:
    """Returns the answer that an error stands for which the registry gave."""
    status, text = http_status(error), without_credentials(str(getattr(error, "error_message", "")), client.config())
    if status in _REFUSED_ACCESS:
        return SubjectAnswer(
            Outcome.NOT_ASKED,
            f"the registry refuses the credentials (HTTP {status}: {text})",
            "give those of a user who may read the subject, in the settings of the registry (basic.auth.user.info)",
        )
    if status in _REFUSED_SCHEMA:
        what = f"the registry refuses the schema (HTTP {status})"
        return SubjectAnswer(Outcome.INCOMPATIBLE, what, "correct the schema", (text,))
    return SubjectAnswer(
        Outcome.NOT_ASKED, f"the registry fails (HTTP {status}: {text})", "see whether its URL is right, and its log"
    )


def _to_register(client: RegistryClient, request: FirstRequest) -> SubjectAnswer:
    schema = request.schema
    if schema is None:
        return SubjectAnswer(
            Outcome.NOT_REGISTERED,
            "the serde has no schema to write with",
            "give it one, or set auto.register.schemas=false and use.latest.version=true",
        )
    found = _registered(client, request, schema)
    if found is not None:
        return found
    if not _found(lambda: client.get_versions(request.subject)):
        return SubjectAnswer(Outcome.NEW_SUBJECT, "the schema would be its first version")
    if request.unregistered:
        return SubjectAnswer(
            Outcome.NOT_CHECKED,
            f"the schema imports what is not registered yet: {', '.join(request.unregistered)}",
            "ask again when it is",
        )
    if str(client.config().get("url")).startswith("mock://"):
        return SubjectAnswer(Outcome.NEW_VERSION, "a registry in memory takes any schema")
    if client.test_compatibility_all_versions(request.subject, schema, normalize=request.normalize):
        return SubjectAnswer(Outcome.NEW_VERSION, "the schema is compatible, and would be the next version")
    level = _level(client, request.subject)
    return SubjectAnswer(
        Outcome.INCOMPATIBLE,
        f"the registry would refuse the schema{level and f': compatibility is {level}'}",
        f"change the schema as {level or 'the compatibility of the subject'} allows, or write to a new topic",
        _reasons(client, request, schema),
    )


def _to_look_up(client: RegistryClient, request: FirstRequest) -> SubjectAnswer:
    found = None if request.schema is None else _registered(client, request, request.schema)
    what = f"the serde does not register its schema ({request.wanted})"
    return found or SubjectAnswer(Outcome.NOT_REGISTERED, what, "register it before")


def _of_latest(client: RegistryClient, request: FirstRequest) -> SubjectAnswer:
    found = _found(lambda: client.get_latest_version(request.subject))
    return _missing(request) if found is None else _as_set(request, found.version, found.schema_id)


def _of_latest_with_metadata(client: RegistryClient, request: FirstRequest) -> SubjectAnswer:
    metadata = request.metadata or {}
    found = _found(lambda: client.get_latest_with_metadata(request.subject, metadata, deleted=True))
    return _missing(request) if found is None else _as_set(request, found.version, found.schema_id)


def _by_id(client: RegistryClient, request: FirstRequest) -> SubjectAnswer:
    schema_id = request.schema_id
    found = None if schema_id is None else _found(lambda: client.get_schema(schema_id, request.subject))
    return _missing(request) if found is None else _as_set(request, None, schema_id)


def _missing(request: FirstRequest) -> SubjectAnswer:
    what = f"there is no schema that {request.wanted} could take"
    return SubjectAnswer(Outcome.NOT_REGISTERED, what, "register one before")


def _as_set(request: FirstRequest, version: int | None, schema_id: int | None) -> SubjectAnswer:
    what = f"{request.wanted}; the schema of the serde is not compared"
    return SubjectAnswer(Outcome.AS_SET, what, version=version, schema_id=schema_id)


_ANSWERS: Final[dict[Wanted, Callable[[RegistryClient, FirstRequest], SubjectAnswer]]] = {
    Wanted.REGISTER: _to_register,
    Wanted.LOOK_UP: _to_look_up,
    Wanted.LATEST: _of_latest,
    Wanted.LATEST_WITH_METADATA: _of_latest_with_metadata,
    Wanted.BY_ID: _by_id,
}


def _registered(client: RegistryClient, request: FirstRequest, schema: RegistrySchema) -> SubjectAnswer | None:
    found = _found(lambda: client.lookup_schema(request.subject, schema, request.normalize))
    if found is None:
        return None
    return SubjectAnswer(Outcome.REGISTERED, version=found.version, schema_id=found.schema_id)


def _found(ask: Callable[[], T]) -> T | None:
    """Returns what there is; ``None`` where the registry says that there is nothing."""
    try:
        return ask()
    except Exception as error:  # the client has several, and those of its HTTP library
        if not says_not_found(error):
            raise
        return None


_TAKES_ALL: Final = "NONE"


def _level(client: RegistryClient, subject: str) -> str:
    """The level of compatibility of a subject that refuses a schema; no text where that cannot be learned.

    It cannot be ``NONE``, under which everything is taken: registries give that for a subject that follows the level of
    all (Apicurio 3.0.9).
    """
    try:
        level = _found(lambda: client.get_compatibility(subject))
        if level is None or level == _TAKES_ALL:
            level = client.get_compatibility()
    except Exception:  # may need another right; the outcome is known without it
        return ""
    return "" if level == _TAKES_ALL else level


class _RestClient(Protocol):
    """The part of the client that sends requests."""

    def post(self, url: str, body: dict[str, object]) -> object: ...


def _reasons(client: RegistryClient, request: FirstRequest, schema: RegistrySchema) -> tuple[str, ...]:
    """Asks once more, for the reasons.

    No public method of the client gives them (2.16.1: ``test_compatibility_all_versions`` returns a bool, also where
    ``verbose`` is set), so its REST client is taken where there is one, which has its addresses and credentials.
    """
    rest: _RestClient | None = getattr(client, "_rest_client", None)
    if rest is None:
        return ()
    path = f"compatibility/subjects/{quote(request.subject, safe='')}/versions"
    try:
        asked = rest.post(f"{path}?normalize={request.normalize}&verbose=True", body=schema.to_dict())
    except Exception:  # the outcome is known without it
        return ()
    said = asked.get("messages") if isinstance(asked, dict) else None
    return tuple(map(str, said or ()))
