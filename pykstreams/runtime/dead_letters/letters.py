"""A dead letter as it lies in its topic, of this library or of Kafka Streams (KIP-1034), and which of them are meant.

The record itself is the input record that failed; headers that begin with ``__streams.errors.`` tell why. A letter that
is replayed loses these, and has one that counts its replays.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol, cast

from pykstreams.core.headers import Headers
from pykstreams.core.record import get_header

ERRORS: Final = "__streams.errors."
REPLAYS_HEADER: Final = "__streams.replays"
"""How often the record was replayed, in digits."""


class RawLetter(Protocol):
    """The used methods of ``confluent_kafka.Message``."""

    def topic(self) -> str | None: ...

    def partition(self) -> int | None: ...

    def offset(self) -> int | None: ...

    def timestamp(self) -> tuple[int, int]: ...

    def key(self) -> bytes | None: ...

    def value(self) -> bytes | None: ...

    def headers(self) -> object: ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One of them; what its headers do not tell is ``None``.

    ``headers`` are those of the record itself, ``source_*`` where it was read, ``exception`` the class of the error.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    exception: str | None
    message: str | None
    stacktrace: str | None
    source_topic: str | None
    source_partition: int | None
    source_offset: int | None
    attempts: int | None
    first_failure: int | None
    replays: int

    @classmethod
    def of(cls, raw: RawLetter) -> DeadLetter:
        """Reads a letter; a record without any such header is one about which nothing is known."""
        headers = tuple(cast("Headers", raw.headers() or ()))

        def text(name: str) -> str | None:
            found = get_header(headers, ERRORS + name)
            return None if found is None else found.decode(errors="replace")

        return cls(
            raw.topic() or "",
            -1 if (partition := raw.partition()) is None else partition,
            -1 if (offset := raw.offset()) is None else offset,
            raw.timestamp()[1],
            raw.key(),
            raw.value(),
            tuple(one for one in headers if not one[0].startswith(ERRORS)),
            text("exception"),
            text("message"),
            text("stacktrace"),
            text("topic"),
            _number(text("partition")),
            _number(text("offset")),
            _number(text("attempts")),
            _number(text("first.failure")),
            _number((get_header(headers, REPLAYS_HEADER) or b"0").decode(errors="replace")) or 0,
        )

    def headers_of_replay(self) -> Headers:
        """The headers with which it is sent again."""
        kept = (header for header in self.headers if header[0] != REPLAYS_HEADER)
        return (*kept, (REPLAYS_HEADER, b"%d" % (self.replays + 1)))


@dataclass(frozen=True, slots=True)
class Selection:
    """Which letters are meant; what is left out means all.

    :param source_topics: by the topics where the records were read.
    :param exceptions: by the classes of errors, with their modules or without.
    :param since: by their timestamps, which are those of the records, in ms.
    :param places: by partition and offset in their topic.
    """

    source_topics: Collection[str] = ()
    exceptions: Collection[str] = ()
    since: int | None = None
    places: Collection[tuple[int, int]] = ()

    def has(self, letter: DeadLetter) -> bool:
        """Whether a letter is meant."""
        return (
            (not self.source_topics or letter.source_topic in self.source_topics)
            and (not self.exceptions or self._is_of_class(letter.exception))
            and (self.since is None or letter.timestamp >= self.since)
            and (not self.places or (letter.partition, letter.offset) in self.places)
        )

    def _is_of_class(self, exception: str | None) -> bool:
        return exception is not None and (
            exception in self.exceptions or exception.rpartition(".")[2] in self.exceptions
        )


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
