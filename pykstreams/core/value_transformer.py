"""Users' transformers for ``KTable.transform_values``: an object per task that maps the values of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Never, TypeAlias, TypeVar

from pykstreams.core.processor import KEPT_IN_INIT, ProcessorContext
from pykstreams.core.types import Headers
from pykstreams.core.user_code.tells_where import TellsWhere

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")


class ValueTransformerContext(ProcessorContext[Never, Never]):
    """The context of a ``ValueTransformerWithKey``: time and headers are asked for here.

    ``forward`` raises ``StreamsError``: a transformer gives exactly one value for each value.
    """

    @property
    @abstractmethod
    def timestamp(self) -> int:
        """The time of the row in ms; where the table is only read, -1 for a row that is not there."""

    @property
    @abstractmethod
    def headers(self) -> Headers:
        """The headers of the record that changed the row; none where the table is only read."""


class ValueTransformerWithKey(TellsWhere, ABC, Generic[K, V, VR]):
    """Maps the values of a table, with stores if it needs any; one object per task.

    It is also called for old values and for deletions (``None``), and by joins that read a table without a store: the
    same value may come several times. ``self.context`` is there after ``init``.
    """

    _elsewhere = KEPT_IN_INIT

    context: ValueTransformerContext

    def init(self, context: ValueTransformerContext) -> None:
        """Called once, before the first value; keeps the context."""
        self.context = context

    @abstractmethod
    def transform(self, key: K, value: V | None) -> VR | None:
        """Returns the new value; ``None`` deletes the row. The value is ``None`` for a deletion and a missing row."""

    def close(self) -> None:
        """Called once at the end."""


ValueTransformerWithKeySupplier: TypeAlias = Callable[[], ValueTransformerWithKey[K, V, VR]]
