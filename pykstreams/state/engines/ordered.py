"""Key order beside a dict; keys are put in order when somebody scans, so that who never scans pays nothing.

Invariant of ``OrderedKeys``: while it is awake its chunks hold exactly the keys of its mapping, ascending.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping

from pykstreams.state.interfaces.engine import Row, Write, prefix_end

_CHUNK = 512


class OrderedKeys:
    """The keys of a mapping in order, kept in chunks so that adding one moves few others.

    It sleeps until the first scan, and falls asleep again when many keys came since the last one.
    """

    __slots__ = ("_added", "_chunks", "_firsts", "_mapping", "awake")

    def __init__(self, mapping: Mapping[bytes, object]) -> None:
        self._mapping = mapping
        self.awake = False
        self._chunks: list[list[bytes]] = []
        self._firsts: list[bytes] = []
        self._added = 0

    def add(self, key: bytes) -> None:
        """Adds a key that was not in the mapping before."""
        if not self.awake:
            return
        self._added += 1
        if self._added > 64 + len(self._mapping) // 4:
            self.clear()
            return
        if not self._chunks:
            self._chunks, self._firsts = [[key]], [key]
            return
        index = max(bisect_right(self._firsts, key) - 1, 0)
        chunk = self._chunks[index]
        insort(chunk, key)
        self._firsts[index] = chunk[0]
        if len(chunk) > 2 * _CHUNK:
            self._chunks[index : index + 1] = chunk[:_CHUNK], chunk[_CHUNK:]
            self._firsts.insert(index + 1, chunk[_CHUNK])

    def discard(self, key: bytes) -> None:
        """Drops a key that has left the mapping."""
        if not self.awake:
            return
        index = bisect_right(self._firsts, key) - 1
        chunk = self._chunks[index]
        del chunk[bisect_left(chunk, key)]
        if chunk:
            self._firsts[index] = chunk[0]
        else:
            del self._chunks[index], self._firsts[index]

    def clear(self) -> None:
        """Forgets the order; the next scan makes it anew from the mapping."""
        self.awake, self._chunks, self._firsts = False, [], []

    def between(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> list[bytes]:
        """The keys from ``lower`` up to, and without, ``upper``, as a list of their own."""
        self._wake()
        chunks, firsts = self._chunks, self._firsts
        start = 0 if lower is None else max(bisect_right(firsts, lower) - 1, 0)
        end = len(chunks) if upper is None else bisect_left(firsts, upper, start)
        found: list[bytes] = []
        for at in range(start, end):
            chunk = chunks[at]
            left = bisect_left(chunk, lower) if at == start and lower is not None else 0
            right = bisect_left(chunk, upper) if at == end - 1 and upper is not None else len(chunk)
            found += chunk[left:right]
        if reverse:
            found.reverse()
        return found

    def first_from(self, lower: bytes) -> bytes | None:
        """The first key that is not lower; ``None`` when there is none."""
        self._wake()
        for chunk in self._chunks[max(bisect_right(self._firsts, lower) - 1, 0) :]:
            at = bisect_left(chunk, lower)
            if at < len(chunk):
                return chunk[at]
        return None

    def prefixes(self, lower: bytes, upper: bytes | None) -> list[bytes]:
        """The beginnings of the keys from ``lower`` up to, and without, ``upper``: so many bytes as ``lower`` has."""
        found: list[bytes] = []
        key = self.first_from(lower)
        while key is not None and (upper is None or key < upper):
            prefix = key[: len(lower)]
            found.append(prefix)
            end = prefix_end(prefix)
            key = None if end is None else self.first_from(end)
        return found

    def _wake(self) -> None:
        if not self.awake:
            keys = sorted(self._mapping)
            self._chunks = [keys[at : at + _CHUNK] for at in range(0, len(keys), _CHUNK)]
            self._firsts = [chunk[0] for chunk in self._chunks]
            self.awake = True
        self._added = 0


class KeyIndex:
    """The composed keys of a mapping by the user's key inside them, each list ascending.

    It sleeps until it is first asked.
    """

    __slots__ = ("_lists", "_mapping", "awake", "part")

    def __init__(self, mapping: Mapping[bytes, object], part: slice) -> None:
        self._mapping = mapping
        self.part = part
        self.awake = False
        self._lists: dict[bytes, list[bytes]] = {}

    def add(self, composed: bytes) -> None:
        """Adds a key that was not in the mapping before."""
        if not self.awake:
            return
        found = self._lists.get(composed[self.part])
        if found is None:
            self._lists[composed[self.part]] = [composed]
        elif composed > found[-1]:
            found.append(composed)
        else:
            insort(found, composed)

    def discard(self, composed: bytes) -> None:
        """Drops a key that has left the mapping."""
        if not self.awake:
            return
        found = self._lists[composed[self.part]]
        del found[bisect_left(found, composed)]
        if not found:
            del self._lists[composed[self.part]]

    def clear(self) -> None:
        """Forgets everything; who asks next has it made anew from the mapping."""
        self.awake, self._lists = False, {}

    def of(self, key: bytes, lower: bytes, upper: bytes, reverse: bool) -> list[bytes]:
        """The composed keys of a user's key from ``lower`` up to, and without, ``upper``, as a list of their own."""
        if not self.awake:
            self.awake = True
            for composed in sorted(self._mapping):
                self._lists.setdefault(composed[self.part], []).append(composed)
        every = self._lists.get(key)
        if every is None:
            return []
        found = every[bisect_left(every, lower) : bisect_left(every, upper)]
        if reverse:
            found.reverse()
        return found


def merged(above: Iterable[Write], below: Iterator[Row], reverse: bool) -> Iterator[Row]:
    """Rows of two layers in order: a row above hides the one below, ``None`` above hides and shows nothing.

    >>> list(merged([(b"a", None), (b"b", b"new")], iter([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]), False))
    [(b'b', b'new'), (b'c', b'3')]
    """
    rest = iter(above)
    head = next(rest, None)
    for row in below:
        key = row[0]
        while head is not None and head[0] != key and (head[0] < key) != reverse:
            if head[1] is not None:
                yield head[0], head[1]
            head = next(rest, None)
        if head is None or head[0] != key:
            yield row
            continue
        if head[1] is not None:
            yield head[0], head[1]
        head = next(rest, None)
    while head is not None:
        if head[1] is not None:
            yield head[0], head[1]
        head = next(rest, None)
