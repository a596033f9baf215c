"""Processors of a user: what they forward has the types that they declare."""

from __future__ import annotations

from pykstreams import FixedKeyProcessor, FixedKeyRecord, KStream, Processor, Record, StreamsBuilder


class Length(Processor[str, str, str, int]):
    """Forwards how long each value is."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(Record(record.key, len(record.value), record.timestamp))
        self.context.forward(record.replace(value=len(record.value)))
        self.context.forward(record)  # type: ignore[arg-type]


class FixedLength(FixedKeyProcessor[str, str, int]):
    """The same without changing keys."""

    def process(self, record: FixedKeyRecord[str, str]) -> None:
        self.context.forward(record.replace(value=len(record.value)))
        self.context.forward(record)  # type: ignore[arg-type]


def lengths(builder: StreamsBuilder) -> tuple[KStream[str, int], KStream[str, int]]:
    texts: KStream[str, str] = builder.stream("texts")
    return texts.process(Length), texts.process_values(FixedLength)
