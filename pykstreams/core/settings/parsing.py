"""From what a user wrote to settings by dotted names: keywords, prefixes, unknown keys and wrong values.

Invariant: every problem names the setting as the user spelled it, its value, and what to write instead.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache

from pykstreams.core.errors import ConfigError
from pykstreams.core.names import similar_name
from pykstreams.core.references import is_reference
from pykstreams.core.settings.keys import (
    APP_PREFIX,
    CLIENT_PREFIXES,
    CLIENT_TAG_PREFIX,
    CONSUMER_PREFIX,
    GLOBAL_CONSUMER_PREFIX,
    INTERNAL_KEYS,
    KEYS,
    MAIN_CONSUMER_PREFIX,
    PRODUCER_PREFIX,
    REMOVED_KEYS,
    RESTORE_CONSUMER_PREFIX,
    TOPIC_KEYS,
    TOPIC_PREFIX,
)
from pykstreams.core.settings.librdkafka_keys import JAVA_CLIENT_KEYS, LIBRDKAFKA_KEYS, Kind, Scope
from pykstreams.core.settings.types import as_flag, as_text, as_whole_number

MAX_TAG_NAME = 20
MAX_TAG_VALUE = 30

_SECRET = re.compile(r"password|passphrase|secret|token$|\.pem$|oauthbearer\.config$|^ssl\.key\b", re.IGNORECASE)
_OWN = f"settings of your own go under {APP_PREFIX!r}"


def is_secret(name: str) -> bool:
    """Whether the value of a setting must not be shown.

    >>> is_secret("consumer.sasl.password"), is_secret("ssl.ca.location")
    (True, False)
    """
    return _SECRET.search(name) is not None


def shown(name: str, value: object) -> str:
    """The value of a setting for messages: its ``repr``, or stars when it is a secret."""
    return "'***'" if is_secret(name) else repr(value)


def dotted_name(keyword: str) -> str | None:
    """The setting that a keyword with underscores stands for; ``None`` when there is none.

    Names come from the tables, because some settings have underscores of their own. Only under ``app_`` every
    underscore becomes a dot.

    >>> dotted_name("commit_interval_ms"), dotted_name("rack_aware_assignment_non_overlap_cost")
    ('commit.interval.ms', 'rack.aware.assignment.non_overlap_cost')
    >>> dotted_name("main_consumer_session_timeout_ms"), dotted_name("app_region_name")
    ('main.consumer.session.timeout.ms', 'app.region.name')
    """
    known = _names_by_keyword().get(keyword)
    if known is not None:
        return known
    tags, app = CLIENT_TAG_PREFIX.replace(".", "_"), APP_PREFIX.replace(".", "_")
    if keyword.startswith(tags):
        return CLIENT_TAG_PREFIX + keyword.removeprefix(tags)
    if keyword.startswith(app):
        return keyword.replace("_", ".")
    return None


def parse_setting(name: str, value: object) -> object:
    """Returns the value of one setting in its type; raises ``ConfigError`` when setting or value is wrong."""
    key = KEYS.get(name)
    if key is not None:
        try:
            parsed = key.parse(value)
        except ValueError as error:
            raise ConfigError(_wrong(name, value, str(error))) from error
        if key.not_offered and parsed != key.default:
            raise ConfigError(f"setting {name!r} is {shown(name, value)}, which is not offered: {key.not_offered}")
        return parsed
    if name in REMOVED_KEYS:
        raise ConfigError(f"setting {name!r} is deprecated in Kafka Streams and unknown here; {REMOVED_KEYS[name]}")
    if name.startswith(APP_PREFIX) and name != APP_PREFIX:
        return value
    if name.startswith(CLIENT_TAG_PREFIX):
        return _parse_tag(name, value)
    if name in INTERNAL_KEYS:
        return _parse_interval(name, value)
    if name in LIBRDKAFKA_KEYS:
        return _parse_client_value(name, name, value)
    for prefix in CLIENT_PREFIXES:
        if name.startswith(prefix):
            return _parse_client_setting(name, prefix, value)
    if name.startswith(TOPIC_PREFIX) and name.removeprefix(TOPIC_PREFIX) in TOPIC_KEYS:
        return _parse_topic_value(name, value)
    raise unknown_setting(name)


def is_known(name: str) -> bool:
    """Whether a dotted name is a setting, whatever its value.

    >>> is_known("poll.ms"), is_known("producer.poll.ms")
    (True, False)
    """
    return name in _known_names() or name in INTERNAL_KEYS or name.startswith((APP_PREFIX, CLIENT_TAG_PREFIX))


def unknown_setting(name: str) -> ConfigError:
    """The error for a dotted name that no table knows, with the nearest one that does exist."""
    if name in JAVA_CLIENT_KEYS:
        return ConfigError(f"unknown setting {name!r}: it belongs to the Java clients; {JAVA_CLIENT_KEYS[name]}")
    return ConfigError(f"unknown setting {name!r}{_nearest(name, _all_names())} ({_OWN})")


def unknown_keyword(keyword: str) -> ConfigError:
    """The error for a keyword that stands for no setting."""
    return ConfigError(f"unknown setting {keyword!r}{_nearest(keyword, _names_by_keyword())} ({_OWN})")


def nearest_keyword(keyword: str) -> str | None:
    """The keyword of a setting that looks most like one that stands for none.

    >>> nearest_keyword("comit_interval_ms"), nearest_keyword("shop_service_host")
    ('commit_interval_ms', None)
    """
    found = difflib.get_close_matches(keyword, list(_names_by_keyword()), n=1, cutoff=0.75)
    return found[0] if found else None


@cache
def _names_by_keyword() -> Mapping[str, str]:
    names = [*_all_names(), *REMOVED_KEYS, *JAVA_CLIENT_KEYS]
    # a setting of Kafka Streams wins over a client's with the same spelling
    return {name.replace(".", "_"): name for name in reversed(names)}


@cache
def _all_names() -> tuple[str, ...]:
    return (
        *KEYS,
        *LIBRDKAFKA_KEYS,
        *(TOPIC_PREFIX + name for name in sorted(TOPIC_KEYS)),
        *(prefix + name for prefix in CLIENT_PREFIXES for name in _client_names(prefix)),
    )


@cache
def _known_names() -> frozenset[str]:
    return frozenset(_all_names())


def _client_names(prefix: str) -> list[str]:
    return [name for name, key in LIBRDKAFKA_KEYS.items() if key.scope in (Scope.ALL, _scope(prefix))]


def _scope(prefix: str) -> Scope:
    if prefix == PRODUCER_PREFIX:
        return Scope.PRODUCER
    consumers = (CONSUMER_PREFIX, MAIN_CONSUMER_PREFIX, RESTORE_CONSUMER_PREFIX, GLOBAL_CONSUMER_PREFIX)
    return Scope.CONSUMER if prefix in consumers else Scope.ALL


def _nearest(name: str, candidates: Iterable[str]) -> str:
    found = similar_name(name, candidates)
    return "" if found is None else f"; did you mean {found!r}?"


def _wrong(name: str, value: object, expected: str) -> str:
    return f"setting {name!r} has the value {shown(name, value)}; {expected}"


def _parse_client_setting(name: str, prefix: str, value: object) -> object:
    client_name = name.removeprefix(prefix)
    key = LIBRDKAFKA_KEYS.get(client_name)
    if key is None:
        if client_name in JAVA_CLIENT_KEYS:
            raise ConfigError(
                f"unknown setting {name!r}: what follows {prefix!r} is a key of librdkafka, and "
                f"{client_name!r} belongs to the Java clients; {JAVA_CLIENT_KEYS[client_name]}"
            )
        near = _nearest(name, [prefix + known for known in _client_names(prefix)])
        raise ConfigError(f"unknown setting {name!r}: what follows {prefix!r} is a key of librdkafka{near}")
    if key.scope not in (Scope.ALL, _scope(prefix)):
        raise ConfigError(f"setting {name!r} has the wrong prefix: {client_name!r} is a setting of {key.scope.value}")
    return _parse_client_value(name, client_name, value)


def _parse_client_value(name: str, client_name: str, value: object) -> object:
    kind = LIBRDKAFKA_KEYS[client_name].kind
    try:
        match kind:
            case Kind.FLAG:
                return as_flag(value)
            case Kind.INT:
                return as_whole_number(value, duration=client_name.endswith(".ms"))
            case Kind.NUMBER:
                return _as_number(value, duration=client_name.endswith(".ms"))
            case Kind.TEXT:
                return _as_client_text(value)
            case Kind.CALLABLE:
                if callable(value) or client_name == "logger" or (isinstance(value, str) and is_reference(value)):
                    return value
    except (TypeError, ValueError) as error:
        raise ConfigError(_wrong(name, value, f"expected {kind.value}")) from error
    forms = " or 'module:attribute'" if kind is Kind.CALLABLE else ""
    raise ConfigError(_wrong(name, value, f"expected {kind.value}{forms}"))


def _as_number(value: object, *, duration: bool) -> int | float:
    if isinstance(value, float):
        return value
    if isinstance(value, str):
        number = float(value)
        return int(number) if number.is_integer() else number
    return as_whole_number(value, duration=duration)


def _as_client_text(value: object) -> str:
    """Text as it is, since passwords may have blanks; numbers and lists as librdkafka reads them."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(as_text(part) for part in value)
    return as_text(value)


def _parse_topic_value(name: str, value: object) -> str:
    try:
        return _as_client_text(value)
    except TypeError as error:
        raise ConfigError(_wrong(name, value, "expected text, a number, or true or false")) from error


def _parse_interval(name: str, value: object) -> int:
    try:
        return as_whole_number(value, duration=True)
    except ValueError as error:
        raise ConfigError(_wrong(name, value, str(error))) from error


def _parse_tag(name: str, value: object) -> str:
    tag = name.removeprefix(CLIENT_TAG_PREFIX)
    if not tag.strip():
        raise ConfigError(f"setting {name!r} names no tag; write {CLIENT_TAG_PREFIX + 'zone'!r}, for example")
    if len(tag) > MAX_TAG_NAME:
        raise ConfigError(f"setting {name!r} names a tag of {len(tag)} characters; at most {MAX_TAG_NAME} are allowed")
    text = str(value).strip() if value is not None else ""
    if not text or len(text) > MAX_TAG_VALUE:
        raise ConfigError(_wrong(name, value, f"expected text of 1 to {MAX_TAG_VALUE} characters"))
    return text
