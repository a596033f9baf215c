"""How large the values of a cache are taken to be, of which most are objects whose size is not known."""

from __future__ import annotations


class ValueSizes:
    """The first values of a cache are measured, later ones have the average of samples.

    ``measures`` says whether the next value is to be measured, whether it is a sample or not; ``average`` is in bytes,
    with the context of the record that put the value.

    :param first: how many values are measured.
    :param weight: how many samples, at most, the average is over.
    """

    __slots__ = ("_always", "_first", "_measured", "_weight", "average", "measures")

    def __init__(self, first: int, weight: int) -> None:
        self._first = first
        self._weight = weight
        self.measures = True
        self.average = 0.0
        self._measured = 0
        self._always = False

    def measure_all(self) -> None:
        """Measures every value from now on."""
        self.measures = self._always = True

    def note(self, size: int) -> None:
        """Notes the size of a value that was measured."""
        self._measured += 1
        self.average += (size - self.average) / min(self._measured, self._weight)
        self.measures = self._always or self._measured < self._first
