"""Counts words by lambdas."""

from __future__ import annotations

from pykstreams import StreamsBuilder, Topology


def words_of(line: str) -> list[str]:
    return line.lower().split()


def word_of(key: str, word: str) -> str:
    return word


def build() -> Topology:
    builder = StreamsBuilder()
    lines = builder.stream("lines", str, str)
    lines.flat_map_values(words_of).group_by(word_of).count(materialized="counts").to_stream().to("counts")
    return builder.build()
