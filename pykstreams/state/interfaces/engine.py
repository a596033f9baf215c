"""The engine below every store: a sorted map of bytes that remembers up to which changelog offset it is committed.

Invariants: a scan shows the state of the moment it was made, without the writes that came later; bounds are
``lower <= key < upper``; keys are ordered as unsigned bytes. Reads of windows and sessions make a scan for each segment
when it is its turn, so what they give is of several moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pykstreams.state.interfaces.store import StoreContext

Row: TypeAlias = tuple[bytes, bytes]
"""A key and its packed value."""

Write: TypeAlias = tuple[bytes, bytes | None]
"""A key and its new packed value; ``None`` deletes."""

Scan: TypeAlias = "Callable[[bytes | None, bytes | None, bool], Iterator[Row]]"
"""(lower, upper, reverse) -> the rows from ``lower`` up to, and without, ``upper``, in order of their keys"""


class BytesStore(Protocol):
    """The interface of the layers of a stack; a layer passes on, unchanged, what it does not alter."""

    def get(self, key: bytes, /) -> bytes | None:
        """The packed value of a key."""
        ...

    def put(self, key: bytes, packed: bytes | None, /) -> None:
        """Sets the packed value of a key; ``None`` deletes."""
        ...

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool, /) -> Iterator[Row]:
        """The rows from ``lower`` up to, and without, ``upper``, in order of their keys."""
        ...


class Engine(BytesStore, Protocol):
    """The lowest layer: where rows are kept."""

    @property
    def persistent(self) -> bool:
        """Whether rows outlive the process."""
        ...

    @property
    def uncommitted_bytes(self) -> int:
        """About how many bytes were written since the last commit, for engines that hold them back."""
        ...

    def open(self, context: StoreContext) -> None:
        """Opens it for one task; one that is open is taken up as it is."""
        ...

    def write(self, rows: Iterable[Write], /) -> None:
        """Puts many rows read from a changelog, later ones over earlier ones."""
        ...

    def drop(self, lower: bytes, upper: bytes, /) -> None:
        """Deletes the rows from ``lower`` up to, and without, ``upper``, at the latest with the next commit.

        Until then they may still be seen: who drops a range reads and writes it no more.
        """
        ...

    def end_restore(self) -> None:
        """Makes ready for reads after ``write``; without it, the first read does."""
        ...

    def commit(self, offset: int | None) -> None:
        """Makes every write so far durable, together with the changelog offset it stands for.

        ``None`` leaves the stored offset as it is.
        """
        ...

    def committed_offset(self) -> int | None:
        """The changelog offset that the durable rows stand for; ``None`` when there is none."""
        ...

    def flushed_offset(self) -> int | None:
        """The committed offset that is left when the process is killed now, or a lower one; ``None`` without one."""
        ...

    def approximate_num_entries(self) -> int:
        """About how many rows there are."""
        ...

    def property_value(self, name: str) -> int | None:
        """A property of the database, such as ``rocksdb.estimate-num-keys``; ``None`` where it has none.

        Any thread may ask, also when it is closed.
        """
        ...

    def statistics(self) -> str | None:
        """The counts of the database as its text; ``None`` where it counts nothing. Any thread may ask."""
        ...

    def close(self) -> None:
        """Lets go of everything; writes since the last commit are gone. Closing again does nothing."""
        ...


def after(key: bytes) -> bytes:
    """The smallest key that is greater: what turns an inclusive upper bound into an exclusive one.

    >>> after(b"a")
    b'a\\x00'
    """
    return key + b"\0"


def prefix_end(prefix: bytes) -> bytes | None:
    """The smallest key that is greater than every key with this prefix; ``None`` when there is none.

    >>> prefix_end(b"ab"), prefix_end(b"a\\xff"), prefix_end(b"\\xff")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None
