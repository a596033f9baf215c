"""Counts how often each word was seen: lines come in on ``lines``, counts go out on ``word-counts``.

    pykstreams run examples/word_count/word_count.py --bootstrap-servers localhost:9092

Grouping by the word changes the key, so the words travel through a topic of the application's own
(``<application id>-words-repartition``) before they are counted. The counts live in a store named ``counts``.
"""

import re

from pykstreams import Grouped, StreamsBuilder, Topology

application_id = "word-count"


def words(line: str) -> list[str]:
    """Gives the words of a line in lower case.

    >>> words("To be, or not to be")
    ['to', 'be', 'or', 'not', 'to', 'be']
    """
    return re.findall(r"\w+", line.lower())


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("lines", str, str)
        .flat_map_values(words)
        .group_by(lambda _, word: word, Grouped(key_serde=str, name="words"))
        .count(materialized="counts")
        .to_stream()
        .to("word-counts")
    )
    return builder.build()
