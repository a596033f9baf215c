"""Instances of Java and of Python are members of one group at the same time, and take tasks over from each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from confluent_kafka import TopicPartition

from tests.interop.conftest import MakeFleet
from tests.interop.fleet import JAVA, PYTHON, Fleet
from tests.interop.outcome import differences, outcome_of
from tests.interop.programs import PROGRAMS, Row, rows_of

WORDS = [f"word{number}" for number in range(40)]


class Words:
    """The input of counts, and what they must come to."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.sent: Counter[str] = Counter()

    def send(self) -> None:
        """Sends each word once more, and waits until all of them are counted."""
        at = sum(self.sent.values())
        self.fleet.turns.send(Row("in", None, f"k{n}", word, at + n, []) for n, word in enumerate(WORDS))
        self.sent.update(WORDS)
        self.fleet.turns.settle()
        self.fleet.check()

    def counted(self) -> dict[str, list[int]]:
        """The counts that came out for each word, in their order."""
        turns = self.fleet.turns
        out = turns.prefix + "out"
        places = [TopicPartition(out, number, 0) for number in range(turns.topics()[out])]
        found: defaultdict[str, list[int]] = defaultdict(list)
        for message in turns.records(places):
            found[(message.key() or b"").decode()].append(int.from_bytes(message.value() or b"", "big"))
        return found

    def miscounted(self) -> dict[str, list[int]]:
        """The counts of the words for which not every one from 1 on came out, once and in order."""
        found = self.counted()
        return {
            word: found.get(word, []) for word, times in self.sent.items() if found.get(word) != [*range(1, times + 1)]
        }


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("kept", marks=pytest.mark.nightly),
        pytest.param("exactly once", marks=pytest.mark.nightly),
        pytest.param("streams", marks=pytest.mark.nightly),
        "streams, exactly once",
    ],
)
def test_a_count_moves_from_two_java_instances_to_python_and_back_one_at_a_time(
    make_fleet: MakeFleet, mode: str
) -> None:
    fleet = make_fleet("counts_of_three_partitions", mode)
    words = Words(fleet)
    for old, language, new in (
        (None, JAVA, "j1"),
        (None, JAVA, "j2"),
        ("j1", PYTHON, "p1"),
        ("j2", PYTHON, "p2"),
        ("p1", JAVA, "j3"),
        ("p2", JAVA, "j4"),
    ):
        fleet.start(language, new)
        words.send()
        if old is not None:
            fleet.stop(old)
            words.send()

    assert words.miscounted() == {}


@pytest.mark.parametrize(
    ("program", "mode"),
    [
        pytest.param("emit_on_window_close", "kept", marks=pytest.mark.nightly),
        ("emit_on_window_close", "exactly once"),
        pytest.param("outer_stream_join", "kept", marks=pytest.mark.nightly),
        pytest.param("outer_stream_join", "exactly once", marks=pytest.mark.nightly),
        pytest.param("left_foreign_key_join", "kept", marks=pytest.mark.nightly),
        pytest.param("left_foreign_key_join", "exactly once", marks=pytest.mark.nightly),
        pytest.param("emit_on_window_close", "streams, exactly once", marks=pytest.mark.nightly),
        pytest.param("outer_stream_join", "streams", marks=pytest.mark.nightly),
        pytest.param("left_foreign_key_join", "streams, exactly once", marks=pytest.mark.nightly),
        pytest.param("suppressed_windows", "kept", marks=pytest.mark.nightly),
        pytest.param("versioned_table", "kept", marks=pytest.mark.nightly),
        pytest.param("table_joins", "kept", marks=pytest.mark.nightly),
    ],
)
def test_a_fleet_that_changes_its_language_under_load_leaves_behind_what_java_alone_does(
    make_fleet: MakeFleet, program: str, mode: str
) -> None:
    judge, fleet = make_fleet(program, mode), make_fleet(program, mode)
    play(judge, (JAVA, JAVA, JAVA, JAVA))
    play(fleet, (PYTHON, PYTHON, JAVA, JAVA))

    before, after = (outcome_of(one.turns, []) for one in (judge, fleet))
    assert differences(before, after, last_only=False, loose=PROGRAMS[program].loose) == []


def play(fleet: Fleet, languages: Sequence[str]) -> None:
    """Goes through all phases; in each, the oldest of the workers is replaced while records flow."""
    workers = ["0"] if fleet.turns.spec.one_instance else ["0", "1"]
    for worker in workers:
        fleet.start(JAVA, worker)
    # with several inputs the order of what is there and what is still to come would be drawn
    in_steps = fleet.turns.spec.steps or len(fleet.turns.spec.inputs) > 1
    for number, (rows, language) in enumerate(zip(rows_of(fleet.turns.program), languages, strict=True), len(workers)):
        steps = [[row] for row in rows] if in_steps else [rows]
        for step in steps:
            fleet.turns.send(step)
            if step is steps[0]:
                workers.append(str(number))
                fleet.replace(workers.pop(0), language, str(number))
            fleet.turns.settle()
            fleet.check()
