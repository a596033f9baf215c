"""Things that a topology says twice and not alike."""

from __future__ import annotations

from typing import NamedTuple


class Contradiction(NamedTuple):
    """Two sayings that cannot both be right, as far as their types tell. The topology is built nevertheless.

    :param where: the step, the table or the topic.
    :param cure: what to write.

    >>> str(Contradiction("KStream.map", "f is called with two arguments", "correct it"))
    'KStream.map: f is called with two arguments; correct it'
    """

    where: str
    what: str
    cure: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.cure}"
