"""A processor forwards a copy of its input with another value than it says."""

from pykstreams import Processor, Record


class Length(Processor[str, str, str, int]):
    def process(self, record: Record[str, str]) -> None:
        # error: arg-type of mypy, reportArgumentType of pyright
        self.context.forward(record.replace(value=record.value.upper()))
