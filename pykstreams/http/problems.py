"""Errors as JSON problems (RFC 9457): what happened, where, and what to do; never a stack trace."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from pykstreams.core.errors import InvalidStateStoreError, SerializationError, UnknownStateStoreError
from pykstreams.http.exchange import HttpAnswer

log = logging.getLogger(__name__)

RETRY_AFTER: Final = {"retry-after": "1"}
"""Asks for another try in a second: what is missing is on its way."""

WRITE_UTF_8: Final = "write text in UTF-8, and bytes that are keys in base64"
"""Advice for what is no text."""

_TITLES: Final = {
    "bad-request": (400, "The request cannot be understood"),
    "bad-key": (400, "The key is none of this store"),
    "wrong-kind": (400, "The store is of another kind"),
    "too-many-rows": (400, "More rows were asked for than one answer holds"),
    "unauthorized": (401, "The token is missing or wrong"),
    "not-found": (404, "There is nothing at this address"),
    "unknown-store": (404, "The topology has no such store"),
    "no-such-key": (404, "The store has nothing for the key"),
    "method": (405, "Only reading is possible"),
    "too-slow": (408, "The request took too long to arrive"),
    "cursor-gone": (410, "The row at which the cursor stands is gone"),
    "too-large": (413, "The request is too large"),
    "internal": (500, "The answer could not be made"),
    "no-json": (500, "A value has no form in JSON"),
    "unreadable": (500, "A row cannot be read by the serdes of its store"),
    "bad-peer": (502, "Another instance answered what cannot be understood"),
    "unavailable": (503, "The partition cannot be read now"),
    "not-up-to-bound": (503, "The partition has not come as far as the bound"),
    "overloaded": (503, "Too many requests are waiting"),
    "timeout": (504, "The answer took too long"),
}


_SHOWN: Final = 200
"""How much of a text of the request is told, which the path of the problem may have anyway."""


def shown(text: str) -> str:
    """A text of the request as a problem tells it: the beginning of a long one.

    >>> shown("tea"), len(shown("t" * 1000))
    ('tea', 203)
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class ProblemError(Exception):
    """An answer that is an error.

    :param kind: the last part of its ``type``, of which status and title follow.
    :param detail: what happened, where, and what to do.
    :param more: further members of the body.
    """

    def __init__(self, kind: str, detail: str, **more: object) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail.encode("utf-8", "backslashreplace").decode()
        """Text that can be sent, whatever a serde of a user says."""
        self.more: Mapping[str, object] = more
        self.status, self.title = _TITLES[kind]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        headers = {"content-type": "application/problem+json"}
        if self.status == 503:
            headers |= RETRY_AFTER
        if self.status == 401:
            headers["www-authenticate"] = 'Bearer realm="pykstreams"'
        if self.status == 405:
            headers["allow"] = "GET, HEAD"
        if self.kind == "too-large":
            headers["connection"] = "close"
        return headers

    def answer(self, path: str) -> HttpAnswer:
        """The answer to a request of a path."""
        return HttpAnswer(self.status, self.headers, self.body(path))

    def body(self, path: str) -> bytes:
        """The body of the answer to a request of a path."""
        return orjson.dumps(
            {
                "type": f"urn:pykstreams:problem:{self.kind}",
                "title": self.title,
                "status": self.status,
                "detail": self.detail,
                "instance": path,
                **self.more,
            }
        )


def no_such_key(store: str, key: str, sources: Sequence[Mapping[str, object]]) -> ProblemError:
    """The problem for a key that a store does not have, according to these sources."""
    return ProblemError(
        "no-such-key",
        f"store {store!r} has nothing for {shown(key)!r}",
        **{"from": sources[0] if len(sources) == 1 else sources},
    )


def problem_kinds() -> list[tuple[str, int, str]]:
    """All kinds of problems with their status and title."""
    return [(kind, status, title) for kind, (status, title) in _TITLES.items()]


def problem_of(error: BaseException, path: str) -> ProblemError:
    """The problem for an error of a read; one that nobody foresaw is logged, and its text stays here."""
    asked = shown(path)
    match error:
        case ProblemError():
            return error
        case UnknownStateStoreError():
            return ProblemError("unknown-store", str(error))
        case InvalidStateStoreError():
            return ProblemError("unavailable", str(error))
        case SerializationError():
            return ProblemError("unreadable", str(error))
        case TimeoutError():
            return ProblemError(
                "timeout", f"{asked} was not answered in time; ask for fewer rows, or again when there is less to do"
            )
    log.error("request of %s failed: %r", asked, error, exc_info=error)
    return ProblemError(
        "internal", f"{asked} could not be answered; the log of this instance says why ({type(error).__name__})"
    )
