"""Names of nodes, stores and internal topics: what users may give, and what is generated where they give none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from pykstreams.core.errors import TopologyError

REPARTITION_SUFFIX: Final = "-repartition"
REGISTRATION_SUFFIX: Final = "-subscription-registration"
RESPONSE_SUFFIX: Final = "-subscription-response"
SUBSCRIPTION_TOPIC_SUFFIX: Final = "-topic"
"""Follows the name of either topic of a foreign-key join, given or generated."""
SUBSCRIPTION_STORE_SUFFIX: Final = "-subscription-store"
"""Follows the name of a foreign-key join, if it has one, in the name of its store."""
FOREIGN_KEY_JOIN_PREFIX: Final = "KTABLE-FK-JOIN-"
REGISTRATION_PREFIX: Final = f"{FOREIGN_KEY_JOIN_PREFIX}SUBSCRIPTION-REGISTRATION-"
RESPONSE_PREFIX: Final = f"{FOREIGN_KEY_JOIN_PREFIX}SUBSCRIPTION-RESPONSE-"

_CHANGELOG_SUFFIX: Final = "-changelog"
_INTERNAL_SUFFIXES: Final = (
    _CHANGELOG_SUFFIX,
    REPARTITION_SUFFIX,
    REGISTRATION_SUFFIX + SUBSCRIPTION_TOPIC_SUFFIX,
    RESPONSE_SUFFIX + SUBSCRIPTION_TOPIC_SUFFIX,
)
_GENERATED_SUBSCRIPTION_TOPIC: Final = re.compile(
    rf".+-(?:{REGISTRATION_PREFIX}|{RESPONSE_PREFIX})\d+{SUBSCRIPTION_TOPIC_SUFFIX}"
)

_MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


class Named(str):
    """A checked name: letters, digits, ``.``, ``_`` and ``-``, at most 249 characters (``TopologyError`` otherwise).

    >>> Named("orders-by-customer")
    'orders-by-customer'
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Named:
        return super().__new__(cls, valid_name(name))


def valid_name(name: str) -> str:
    """Returns the name, or raises ``TopologyError`` that says what is wrong with it (``Named.validate``, 4.3.1)."""
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}; expected a str")
    if not name:
        raise TopologyError("a name is empty; give at least one character or leave the name away")
    if name in (".", ".."):
        raise TopologyError(f"name {name!r} is not allowed, since topics and folders are named after it")
    if (fault := fault_of_name(name)) is not None:
        raise TopologyError(f"name {name!r} {fault}")
    return name


def similar_name(name: str, names: Iterable[str]) -> str | None:
    """Returns the one of some names that may be meant by one that is none of them.

    >>> similar_name("ordres", ["orders", "prices"]), similar_name("tea", ["orders"])
    ('orders', None)
    """
    return next(iter(difflib.get_close_matches(name, list(names), 1)), None)


def fault_of_name(name: str) -> str | None:
    """Says what is wrong with the length or the characters of a name, be it of a node, a store or a topic."""
    if len(name) > _MAX_LENGTH:
        return f"has {len(name)} characters; at most {_MAX_LENGTH} are allowed"
    if not _LEGAL.fullmatch(name):
        return "has characters other than ASCII letters, digits, '.', '_' and '-'"
    return None


def fault_of_topic(name: str) -> str | None:
    """Says why Kafka refuses a topic of this name (``Topic.detectInvalidTopic``, 4.3.1), ``None`` where it does not.

    >>> fault_of_topic("a b"), fault_of_topic("orders")
    ("has characters other than ASCII letters, digits, '.', '_' and '-'", None)
    """
    if not name:
        return "has an empty name"
    return "has a name that folders have" if name in (".", "..") else fault_of_name(name)


def topic_name(topic: object, expected: str = "the name of a topic") -> str:
    """Returns the topic that a step was given; ``TypeError``, which says what to give, for what is no text."""
    if not isinstance(topic, str):
        raise TypeError(f"topic is {topic!r}; expected {expected}")
    return topic


def changelog_of(store: str) -> str:
    """The name of a store's changelog without the application in front of it.

    >>> changelog_of("counts")
    'counts-changelog'
    """
    return store + _CHANGELOG_SUFFIX


def internal_topic_name(application_id: str, topic: str) -> str:
    """The name of an internal topic in the cluster: with its application in front of it."""
    return f"{application_id}-{topic}"


def looks_internal(topic: str) -> bool:
    """Whether a topic of the cluster is named as those that applications make for themselves.

    >>> looks_internal("shop-counts-changelog"), looks_internal("orders")
    (True, False)
    """
    return topic.endswith(_INTERNAL_SUFFIXES) or _GENERATED_SUBSCRIPTION_TOPIC.fullmatch(topic) is not None


def changelog_name(application_id: str, store: str) -> str:
    """The name of a store's changelog in the cluster.

    >>> changelog_name("shop", "counts")
    'shop-counts-changelog'
    """
    return internal_topic_name(application_id, changelog_of(store))


class NodeNamer:
    """Hands out names with Kafka Streams' prefixes and one counter of ten digits for nodes and stores together.

    The counter advances also where the user gave a name, so that naming a step renumbers no neighbour
    (``NamedInternal.orElseGenerateWithPrefix``, 4.3.1).
    """

    def __init__(self) -> None:
        self._next = 0

    def node(self, prefix: str) -> str:
        """``KSTREAM-MAP-`` gives ``KSTREAM-MAP-0000000003``."""
        name = f"{prefix}{self._next:010d}"
        self._next += 1
        return name

    def store(self, prefix: str) -> str:
        """``KSTREAM-AGGREGATE-`` gives ``KSTREAM-AGGREGATE-STATE-STORE-0000000003``."""
        return self.node(f"{prefix}STATE-STORE-")

    def named(self, name: str | None, prefix: str) -> str:
        """The user's name if there is one, else a generated one."""
        generated = self.node(prefix)
        return generated if name is None else valid_name(name)

    def suffixed(self, name: str | None, suffix: str, prefix: str) -> str:
        """The user's name with a suffix if there is one, else a generated one."""
        generated = self.node(prefix)
        return generated if name is None else valid_name(name + suffix)
