"""Join of a stream with a table: each record of the stream is joined with the row that the table has at that moment.

Records of the table change it and give no results. The table may be one of the task's own or a global one: the operator
reads it through its view (``KStreamKTableJoinProcessor.process``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward, Headers, KeyValueMapper
from pykstreams.processors.table_view import ReadRow, TableView


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    """Gives ``joiner(value, table value)``, or ``joiner(key, value, table value)`` with ``with_key``.

    ``key_selector(key, value)`` gives the key to look up, without one the record's own. A record without value is
    dropped, and so is one without the key to look up, unless ``left``. Where the table has no row there is no
    result, or with ``left`` one for the table value ``None``. Key, timestamp and headers are the record's.
    """

    view: TableView
    joiner: Callable[..., Any]
    left: bool
    with_key: bool = False
    key_selector: KeyValueMapper[Any, Any, Any] | None = None

    def build(self, context: OperatorContext) -> Forward:
        read = self.view.build(context)
        if self.key_selector is not None:
            return self._by_selected_key(self.key_selector, read, context)
        joiner, left, with_key = self.joiner, self.left, self.with_key
        forward, fail, drop = context.forward, context.fail, context.drop

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                drop(_NULL)
                return
            try:
                row = None if key is None else read(key)
                if row is None and not left:
                    return
                other = None if row is None else row[0]
                joined = joiner(key, value, other) if with_key else joiner(value, other)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, joined, timestamp, headers)

        return process

    def _by_selected_key(
        self, selector: KeyValueMapper[Any, Any, Any], read: ReadRow, context: OperatorContext
    ) -> Forward:
        joiner, left, with_key = self.joiner, self.left, self.with_key
        forward, fail, drop = context.forward, context.fail, context.drop

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            try:
                selected = selector(key, value)
                if value is None or (selected is None and not left):
                    drop(_NULL)
                    return
                row = None if selected is None else read(selected)
                if row is None and not left:
                    return
                other = None if row is None else row[0]
                joined = joiner(key, value, other) if with_key else joiner(value, other)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, joined, timestamp, headers)

        return process


_NULL = "the value of a record, or the key to join it by, is null"
