"""The routes that read stores: from the parameters of a request to the question for its store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pykstreams.core.errors import SerializationError
from pykstreams.http import parameters as named
from pykstreams.http.parameters import Given, Parameter
from pykstreams.http.problems import ProblemError, shown
from pykstreams.http.questions import (
    KeyQuestion,
    Question,
    RangeQuestion,
    SessionsQuestion,
    VersionQuestion,
    VersionsQuestion,
    WindowsQuestion,
    key_writer,
    not_readable,
    serde_of,
)
from pykstreams.runtime.queries.catalog import StoreDescription
from pykstreams.serdes.key_texts import prefix_of_text
from pykstreams.state.encoding.composed_keys import LAST_TIME
from pykstreams.state.store_kinds import StoreKind, buffer_refused


@dataclass(frozen=True, slots=True)
class StoreRoute:
    """A way to ask a store.

    :param kinds: the stores that can be asked so.
    :param single: whether the answer is one row.
    :param question: makes the question of a store and the parameters of a request.
    """

    path: str
    name: str
    summary: str
    kinds: tuple[StoreKind, ...]
    parameters: tuple[Parameter, ...]
    question: Callable[[StoreDescription, Given], Question]
    single: bool = False

    def asked_of(self, store: StoreDescription, given: Given) -> Question:
        """The question; a ``ProblemError`` for a store of another kind."""
        if store.kind is StoreKind.BUFFER:
            raise ProblemError("wrong-kind", buffer_refused(store.name))
        if store.kind not in self.kinds:
            fitting = [one.path for one in STORE_ROUTES if store.kind in one.kinds]
            ways = ", ".join(fitting) or "KafkaStreams.store, for a store of your own"
            raise ProblemError(
                "wrong-kind",
                f"store {store.name!r} is a {store.kind.value} store, which {self.path} does not read; take {ways}",
            )
        return self.question(store, given)


def _key(store: StoreDescription, given: Given, name: str = "key") -> object:
    return _key_of(store, given.need(name))


def _optional_key(store: StoreDescription, given: Given, name: str) -> object:
    text = given.text(name)
    return None if text is None else _key_of(store, text)


def _key_of(store: StoreDescription, text: str) -> object:
    read = store.key_of_text
    if read is None:
        raise not_readable(store)
    try:
        return read(text)
    except ValueError as error:
        raise ProblemError("bad-key", str(error)) from error


def _one(store: StoreDescription, given: Given) -> Question:
    if store.kind is StoreKind.VERSIONED:
        return VersionQuestion(store, _key(store, given), given.optional_time("as_of"))
    if given.text("as_of") is not None:
        raise ProblemError("wrong-kind", f"store {store.name!r} keeps no history; leave out as_of")
    return KeyQuestion(store, _key(store, given))


def _range(store: StoreDescription, given: Given) -> Question:
    lower, upper = _optional_key(store, given, "from"), _optional_key(store, given, "to")
    _check_order(store, given, lower, upper, ("from", "to"))
    return RangeQuestion(store, lower, upper, reverse=given.reverse)


def _prefix(store: StoreDescription, given: Given) -> Question:
    text = given.need("prefix")
    try:
        prefix = prefix_of_text(serde_of(store), store.serde_topic, text, store=store.name)
    except (ValueError, SerializationError) as error:
        raise ProblemError("bad-key", f"prefix is {shown(text)!r}: {error}") from error
    if prefix is not None:
        return RangeQuestion(store, prefix=prefix)
    raise ProblemError(
        "wrong-kind",
        f"the keys of store {store.name!r} are written by {store.key_serde!r}; only keys of text or bytes, "
        "and combined ones, have prefixes; ask for a range",
    )


def _versions(store: StoreDescription, given: Given) -> Question:
    times = given.optional_time("from"), given.optional_time("to")
    return VersionsQuestion(store, _key(store, given), *_span(*times), not given.reverse)


def _windows(store: StoreDescription, given: Given) -> Question:
    first, last = _span(given.time("from", 0), given.time("to", LAST_TIME))
    key, lower, upper = _keys(store, given)
    return WindowsQuestion(store, key, first or 0, LAST_TIME if last is None else last, lower, upper, given.reverse)


def _sessions(store: StoreDescription, given: Given) -> Question:
    first, last = _span(given.time("from", 0), given.time("to", LAST_TIME))
    key, lower, upper = _keys(store, given)
    return SessionsQuestion(store, key, first or 0, LAST_TIME if last is None else last, lower, upper, given.reverse)


def _keys(store: StoreDescription, given: Given) -> tuple[object, object, object]:
    key = _optional_key(store, given, "key")
    lower, upper = _optional_key(store, given, "key_from"), _optional_key(store, given, "key_to")
    if key is not None and (lower is not None or upper is not None):
        raise ProblemError("bad-request", "key and key_from or key_to are given; give one key, or the ends of a range")
    _check_order(store, given, lower, upper, ("key_from", "key_to"))
    return key, lower, upper


def _check_order(store: StoreDescription, given: Given, lower: object, upper: object, names: tuple[str, str]) -> None:
    """A ``ProblemError`` for a range that has no keys; a store would warn of it, in the log of the worker."""
    if lower is None or upper is None:
        return
    written = key_writer(store)
    if written(lower) > written(upper):
        first, last = names
        raise ProblemError(
            "bad-request",
            f"{first} is {given.text(first)!r} and {last} is {given.text(last)!r}, whose bytes come before; swap them",
        )


def _span(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    if first is not None and last is not None and first > last:
        raise ProblemError("bad-request", f"from is {first} and to is {last}; swap them")
    return first, last


_VALUES = (StoreKind.KEY_VALUE,)
_BY_KEY = (StoreKind.KEY_VALUE, StoreKind.VERSIONED)
_TIMES = (named.TIME_FROM, named.TIME_TO)
_KEYS = (named.KEY_FROM, named.KEY_TO)

STORE_ROUTES: tuple[StoreRoute, ...] = (
    StoreRoute(
        "/stores/{store}/keys/{key}",
        "get_key",
        "The value of a key, of a versioned store also as of a time.",
        _BY_KEY,
        (named.KEY_IN_PATH, named.AS_OF),
        _one,
        single=True,
    ),
    StoreRoute(
        "/stores/{store}/keys",
        "find_key",
        "The same, with the key in the query.",
        _BY_KEY,
        (named.KEY, named.AS_OF),
        _one,
        True,
    ),
    StoreRoute(
        "/stores/{store}/range",
        "get_range",
        "The rows between two keys, in the order of their bytes within each partition.",
        _VALUES,
        (named.LOWER, named.UPPER, *named.PAGES),
        _range,
    ),
    StoreRoute(
        "/stores/{store}/prefix",
        "get_prefix",
        "The rows whose keys begin with a text, or with bytes; combined keys with their first part.",
        _VALUES,
        (named.PREFIX, named.LIMIT, named.CURSOR),
        _prefix,
    ),
    StoreRoute(
        "/stores/{store}/versions/{key}",
        "get_versions",
        "The versions of a key that were valid at some time of a span, the oldest first.",
        (StoreKind.VERSIONED,),
        (named.KEY_IN_PATH, *_TIMES, *named.PAGES),
        _versions,
    ),
    StoreRoute(
        "/stores/{store}/windows/{key}",
        "get_windows",
        "The windows of a key that start in a span of time.",
        (StoreKind.WINDOW,),
        (named.KEY_IN_PATH, *_TIMES, *named.PAGES),
        _windows,
    ),
    StoreRoute(
        "/stores/{store}/windows",
        "find_windows",
        "The windows of all keys, of those of a range, or of one, that start in a span of time.",
        (StoreKind.WINDOW,),
        (named.KEY, *_KEYS, *_TIMES, *named.PAGES),
        _windows,
    ),
    StoreRoute(
        "/stores/{store}/sessions/{key}",
        "get_sessions",
        "The sessions of a key that end at or after from, and start at or before to.",
        (StoreKind.SESSION,),
        (named.KEY_IN_PATH, *_TIMES, *named.PAGES),
        _sessions,
    ),
    StoreRoute(
        "/stores/{store}/sessions",
        "find_sessions",
        "The sessions of all keys, of those of a range, or of one, that touch a span of time.",
        (StoreKind.SESSION,),
        (named.KEY, *_KEYS, *_TIMES, *named.PAGES),
        _sessions,
    ),
)
