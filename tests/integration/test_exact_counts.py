"""A million records, two worker processes: exact counts without failures, none lost with them.

One topology counts words and re-keyed lines at once, so that one pass serves both. Each worker is ``pykstreams run``
with a state directory of its own. A line in the middle of others kills the worker that reads it first: it dies in the
middle of its work, however fast it is.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.brokers.brokers import create_topic
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

MILLION = 1_000_000
PARTITIONS = 4
SUBTOPOLOGIES = 3
"""One reads lines, one counts words, one counts ends."""

SEED = 20_260_101
INPUTS = ("lines", "words-repartition", "ends-repartition")

SCRIPT = '''
    """Counts the words of lines, and the lines by the word that ends them."""

    from pathlib import Path

    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder
    from tests.integration.crashes import crash_once

    text, number = Serdes.string(), Serdes.long()
    counted = Produced(key_serde=text, value_serde=number)

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        folder = Path(config["app.folder"])

        def is_counted(key, line):
            if not line.startswith("crash"):
                return True
            crash_once(folder / line)
            return False

        all_lines = builder.stream(f"{prefix}-lines", Consumed(key_serde=text, value_serde=text))
        lines = all_lines.filter(is_counted)
        words = lines.flat_map_values(str.split).group_by(lambda _, word: word, grouped("words"))
        words.count(materialized=Materialized("words")).to_stream().to(f"{prefix}-words", counted)
        ends = lines.group_by(lambda _, line: line.rpartition(" ")[2], grouped("ends"))
        ends.count(materialized=Materialized("ends")).to_stream().to(f"{prefix}-ends", counted)
        return builder.build()

    def grouped(name):
        return Grouped(name=name, key_serde=text, value_serde=text)
'''


@dataclass
class Counting(Workers):
    """The application and what it has to count."""

    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    expected: dict[str, Counter[str]] = field(default_factory=lambda: {"words": Counter(), "ends": Counter()})

    def send_lines(self, count: int, *, crash: str = "") -> None:
        """Writes lines of two words, and counts what has to come out; ``crash`` is the line in the middle of them."""
        words, ends = self.expected.values()

        def lines() -> Iterator[tuple[str, str, str]]:
            for number in range(count):
                if crash and number == count // 2:
                    yield "lines", crash, crash
                first, second = (f"word{self.chance.randrange(5_000)}" for _ in range(2))
                words[first] += 1
                words[second] += 1
                ends[second] += 1
                yield "lines", str(number), f"{first} {second}"

        self.send(lines())

    def start_both(self) -> None:
        self.start_all(("one", "two"), SUBTOPOLOGIES * PARTITIONS)

    def unread_lines(self) -> int:
        return self.unread(["lines"])["lines"]

    def wait_until_everything_is_read(self) -> None:
        self.wait("everything is read", lambda: not any(self.unread(INPUTS).values()))

    def results(self) -> dict[str, dict[str, int]]:
        """The last count of every word, by topic."""
        return {
            topic: {word: int.from_bytes(count or b"", "big") for word, count in counts.items()}
            for topic, counts in self.last_values(self.expected).items()
        }


@pytest.fixture
def make_counting(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Counting]]:
    made: list[Counting] = []

    def make(*settings: str) -> Counting:
        name = make_name("exact")
        for suffix in ("lines", "words", "ends"):
            create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
        all_settings = (f"app.folder={tmp_path}", *settings)
        made.append(Counting(bootstrap_servers, name, tmp_path, SCRIPT, PARTITIONS, all_settings))
        return made[-1]

    yield make
    for app in made:
        app.end()


@pytest.mark.nightly
def test_counts_of_a_million_records_are_exact_without_failures(make_counting: Callable[..., Counting]) -> None:
    app = make_counting()
    app.start_both()

    app.send_lines(MILLION)
    app.wait_until_everything_is_read()
    app.stop("one")
    app.stop("two")

    assert app.results() == app.expected


@pytest.mark.nightly
def test_no_count_of_a_million_records_is_too_low_after_a_crash_and_a_loss_of_state(
    make_counting: Callable[..., Counting],
) -> None:
    app = make_counting()

    send_through_faults(app, MILLION)

    results = app.results()
    for topic, expected in app.expected.items():
        found = results[topic]
        assert found.keys() == expected.keys()
        assert {word: (found[word], n) for word, n in expected.items() if found[word] < n} == {}


def test_counts_are_exact_after_a_crash_and_a_loss_of_state_under_exactly_once(
    make_counting: Callable[..., Counting],
) -> None:
    app = make_counting("processing.guarantee=exactly_once_v2")

    send_through_faults(app, 200_000)

    assert app.results() == app.expected


def has_state(said: str) -> bool:
    """Whether a worker has read state, of a task that it has or of one that it warms up before it gets it."""
    return ": restored " in said or "is up to date" in said


def send_through_faults(app: Counting, lines: int) -> None:
    """Has a worker die in the middle of the first half of the lines, and one lose its state, too, in the second."""
    app.start_both()
    app.send_lines(lines // 2, crash="crash 1")
    victim = app.wait_for_crash()
    assert app.unread_lines() > 0
    app.start(victim)
    app.wait_until_everything_is_read()  # so each count has a row in its changelog, whoever dies next

    app.send_lines(lines // 2, crash="crash 2")
    victim = app.wait_for_crash()
    assert app.unread_lines() > 0
    app.delete_state(victim)
    app.start(victim)
    app.wait("the lost state is there again", lambda: has_state(app.log(victim)))
    app.wait_until_everything_is_read()
    app.stop("one")
    app.stop("two")
