"""A running application moves from Kafka Streams to pykstreams and back, one instance at a time, while records flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.interop.conftest import MakeFleet
from tests.interop.fleet import JAVA, PYTHON
from tests.interop.live import PARTITIONS, Gaps, LiveRows, live, now_ms
from tests.interop.outcome import Outcome, differences, outcome_of
from tests.interop.turns import BETWEEN_TASKS

STEPS = (("j1", PYTHON, "p1"), ("j2", PYTHON, "p2"), ("p1", JAVA, "j3"), ("p2", JAVA, "j4"))
LONGEST_GAP_S = 10.0
"""More is a partition that nobody cared for; what it is on a quiet machine: docs/reliability.md."""


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["kept", "exactly once", "streams", "streams, exactly once"])
@pytest.mark.parametrize(
    "program", ["counts_of_three_partitions", "emit_on_window_close", "outer_stream_join", "left_foreign_key_join"]
)
def test_an_application_moves_from_java_to_python_and_back_while_records_flow(
    make_fleet: MakeFleet, program: str, mode: str, record_property: Callable[[str, object], None]
) -> None:
    judge, fleet = make_fleet(program, mode, live(program)), make_fleet(program, mode, live(program))
    for worker in ("j1", "j2"):
        fleet.start(JAVA, worker)
    rows = LiveRows(fleet.turns)
    with rows.flowing():
        rows.flow_on()
        quiet_since = now_ms()
        rows.flow_on()
        began = now_ms()
        for old, language, new in STEPS:
            fleet.replace(old, language, new)
            rows.flow_on()
            fleet.check()
        ended = now_ms()
        rows.flow_on()
    fleet.turns.settle()
    gaps = Gaps(fleet.turns)
    longest, before = gaps.longest_s(began, ended), gaps.longest_s(quiet_since, began)
    said = f"{program}, {mode}: {len(rows.sent)} rows, longest gaps {longest} s, {before} s before"
    print(said)
    record_property("gaps", said)

    for worker in ("j1", "j2"):
        judge.start(JAVA, worker)
    judge.turns.send(rows.sent)
    judge.turns.settle()
    outcomes = [results_and_state(outcome_of(one.turns, [])) for one in (judge, fleet)]

    assert differences(*outcomes, last_only=fleet.turns.spec.foreign_keys, loose=True) == []
    assert len(longest) == PARTITIONS
    assert max(longest.values()) < LONGEST_GAP_S, said


def results_and_state(outcome: Outcome) -> Outcome:
    """An outcome without the records between tasks, which may take turns in another order."""
    kept = {name: rows for name, rows in outcome.topics.items() if not name.endswith(BETWEEN_TASKS)}
    return replace(outcome, topics=kept)
