"""The parameters of requests: each is described once, for reading it and for the OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pykstreams.core.errors import ConfigError
from pykstreams.core.types import timestamp_ms
from pykstreams.http.local_answers import Cursor, bound_of, mark_of_question
from pykstreams.http.options import HttpOptions, stale_ms, whole_ms
from pykstreams.http.problems import ProblemError, shown
from pykstreams.http.routing import Asked


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request.

    :param place: ``path`` or ``query``.
    :param choices: the texts that it may have; empty for any.
    """

    name: str
    text: str
    place: str = "query"
    type: str = "string"
    choices: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The object in the OpenAPI description."""
        schema: dict[str, object] = {"type": self.type}
        if self.choices:
            schema["enum"] = list(self.choices)
        return {
            "name": self.name,
            "in": self.place,
            "required": self.place == "path",
            "description": self.text,
            "schema": schema,
        }


_TIME: Final = "ms since the epoch, or ISO 8601 with a zone"

STORE = Parameter("store", "The name of the store.", "path")
KEY_IN_PATH = Parameter("key", "The key, as its serde writes it: see the guide.", "path")
KEY = Parameter("key", "The key, as its serde writes it: see the guide. For keys that no path can hold.")
STALE = Parameter(
    "stale", "How old the answer of a standby task may be when the owner of a partition is away: refuse, allow, or ms."
)
SCOPE = Parameter(
    "scope",
    "local asks this instance only; parts is how instances ask each other.",
    choices=("group", "local", "parts"),
)
PARTITION = Parameter("partition", "These partitions only, with commas between; for a key also all.")
POSITION = Parameter("position", "How far partitions must have come at least: JSON, as answers have it.")
LIMIT = Parameter("limit", "How many rows at most.", type="integer")
CURSOR = Parameter("cursor", "Where to go on: the next of the last answer.")
ORDER = Parameter("order", "asc by default; desc is the other way round.", choices=("asc", "desc"))
AS_OF = Parameter("as_of", f"The version that was valid then: {_TIME}. The newest one by default.")
TIME_FROM = Parameter("from", f"The earliest time: {_TIME}.")
TIME_TO = Parameter("to", f"The latest time, inclusive: {_TIME}.")
KEY_FROM = Parameter("key_from", "The lowest key.")
KEY_TO = Parameter("key_to", "The highest key, inclusive.")
LOWER = Parameter("from", "The lowest key; from the first one by default.")
UPPER = Parameter("to", "The highest key, inclusive; to the last one by default.")
PREFIX = Parameter("prefix", "What the bytes of a key begin with, written as a key; the first part of a combined key.")

COMMON: Final = (STALE, SCOPE, PARTITION, POSITION)
PAGES: Final = (LIMIT, CURSOR, ORDER)


class Given:
    """The parameters of one request; a ``ProblemError`` for one that is unknown, given twice, or not understood.

    :param known: those that its query may have, by name.
    """

    def __init__(
        self, path: str, in_path: Mapping[str, str], query: Iterable[tuple[str, str]], known: Mapping[str, Parameter]
    ) -> None:
        self.path = path
        self.query: dict[str, str] = {}
        for name, text in query:
            if name not in known:
                raise ProblemError(
                    "bad-request",
                    f"{shown(path)} has no parameter {shown(name)!r}; it has: {', '.join(sorted(known)) or 'none'}",
                )
            if name in self.query:
                raise ProblemError("bad-request", f"parameter {name!r} of {shown(path)} is given twice; give it once")
            choices = known[name].choices
            if choices and text not in choices:
                raise ProblemError("bad-request", f"{name} is {text!r}; write one of: {', '.join(choices)}")
            self.query[name] = text
        self._in_path = in_path

    def text(self, name: str) -> str | None:
        """A parameter of the path or the query; ``None`` when it is not given."""
        found = self._in_path.get(name)
        return self.query.get(name) if found is None else found

    def need(self, name: str) -> str:
        """A parameter that must be there."""
        found = self.text(name)
        if found is None:
            raise ProblemError("bad-request", f"{shown(self.path)} needs the parameter {name!r}; give it in the query")
        return found

    def time(self, name: str, default: int) -> int:
        """A time in ms since the epoch."""
        found = self.optional_time(name)
        return default if found is None else found

    def optional_time(self, name: str) -> int | None:
        """The same, or ``None``."""
        text = self.query.get(name)
        if text is None:
            return None
        if (whole := whole_ms(text)) is not None:
            return whole
        try:
            found = timestamp_ms(datetime.fromisoformat(text.replace(" ", "+")), name)  # a + that was not escaped
        except ValueError as error:
            raise ProblemError(
                "bad-request", f"{name} is {text!r}, which is no time ({error}); write 2026-01-01T00:00Z, or ms"
            ) from error
        if found < 0:
            raise ProblemError("bad-request", f"{name} is {text!r}, and times begin with 1970; write a later one")
        return found

    @property
    def reverse(self) -> bool:
        """Whether rows are wanted the other way round."""
        return self.query.get("order") == "desc"

    @property
    def scope(self) -> str:
        """Who is asked."""
        return self.query.get("scope", "group")

    def asked(self, options: HttpOptions) -> Asked:
        """How the question is to be answered."""
        partition = self.query.get("partition")
        cursor = self.query.get("cursor")
        return Asked(
            self.path,
            self.query,
            self._limit(options),
            None if cursor is None else Cursor.parse(cursor, mark_of_question(self.path, self.query)),
            None if partition in (None, "all") else _numbers(partition or ""),
            partition == "all",
            self.scope != "group",
            self.stale(options),
            bound_of(self.query.get("position")),
        )

    def _limit(self, options: HttpOptions) -> int:
        text = self.query.get("limit")
        if text is None:
            return options.default_rows
        digits = text.lstrip("0") if text.isdecimal() and text.isascii() else ""
        if not digits:
            raise ProblemError("bad-request", f"limit is {text!r}; write a number from 1 to {options.max_rows}")
        if len(digits) > len(str(options.max_rows)) or int(digits) > options.max_rows:
            raise ProblemError(
                "too-many-rows",
                f"limit is {text}, and an answer has {options.max_rows} rows at most; ask for fewer, and go on at the "
                "'next' of each answer",
                max_rows=options.max_rows,
            )
        return int(digits)

    def stale(self, options: HttpOptions) -> int | None:
        """How old answers of standby tasks may be in ms; 0 refuses them, ``None`` allows everything."""
        try:
            return stale_ms(self.query.get("stale", options.stale))
        except ConfigError as error:
            raise ProblemError("bad-request", str(error)) from error


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(one) for one in text.split(",")}))
    except ValueError as error:
        raise ProblemError(
            "bad-request", f"partition is {text!r}; write numbers with commas between, or all for a key"
        ) from error
