"""A processor that must keep keys forwards a record that may have any key."""

from __future__ import annotations

from pykstreams import FixedKeyProcessor, FixedKeyRecord, Record


class Length(FixedKeyProcessor[str, str, int]):
    def process(self, record: FixedKeyRecord[str, str]) -> None:
        # error: arg-type of mypy, reportArgumentType of pyright
        self.context.forward(Record(record.value, len(record.value), record.timestamp))
