"""The topology script whose function leaves objects behind that only Python's collector of cycles frees."""

from __future__ import annotations

import gc
from typing import Final

from benchmarks.programs.event_serdes import text
from pykstreams import Consumed, Grouped, Materialized, Produced, StreamsBuilder, Topology

LINES: Final = 5


class Basket:
    """So many lines, each of which knows its basket."""

    def __init__(self, text: str) -> None:
        self.lines = [Line(self, f"{number} {text * 4}") for number in range(LINES)]

    def first(self) -> str:
        return self.lines[0].text.split(" ", 1)[1]


class Line:
    """One line, of about 400 bytes."""

    def __init__(self, basket: Basket, text: str) -> None:
        self.basket = basket
        self.text = text


def cycles(source: str, sink: str, collect_after: int) -> Topology:
    """cycles: the newest value of each key, cut out of a basket; the collector looks after so many objects."""

    def newest(_: str, line: str, __: str) -> str:
        if gc.get_threshold()[0] != collect_after:  # `run` sets its own when the topology is built already
            gc.set_threshold(collect_after, *gc.get_threshold()[1:])
        return Basket(line).first()[: len(line)]

    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=text))
        .group_by_key(Grouped(key_serde=text, value_serde=text))
        .aggregate(
            str,
            newest,
            materialized=Materialized("newest", key_serde=text, value_serde=text),
        )
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=text))
    )
    return builder.build()
