"""A processor that must keep keys sets the key of its record."""

from __future__ import annotations

from pykstreams import FixedKeyProcessor, FixedKeyRecord


class ByValue(FixedKeyProcessor[str, str, str]):
    def process(self, record: FixedKeyRecord[str, str]) -> None:
        # error: misc of mypy, reportAttributeAccessIssue of pyright
        record.key = record.value
        self.context.forward(record)
