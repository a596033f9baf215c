"""Java and Python in turns on one application id leave behind what Java alone does: records, topics, offsets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.conftest import MakeTurns
from tests.interop.modes import MODES, judge_of
from tests.interop.outcome import Outcome, differences
from tests.interop.programs import PROGRAMS

QUICK = [
    ("count", "kept", "PJ"),
    ("emit_on_window_close", "kept", "JP"),
    ("emit_on_window_close", "exactly once", "PJ"),
]
AT_ONCE = 3

KNOWN = {
    "versioned_table_with_grace": "Java forgets buffered records of expired history (docs/reference/differences.md)"
}


@pytest.mark.parametrize(("program", "mode", "pattern"), QUICK)
def test_a_change_between_the_two_goes_unnoticed(make_turns: MakeTurns, program: str, mode: str, pattern: str) -> None:
    assert differs(make_turns, program, mode, (pattern,)) == {pattern: []}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("program", "mode"),
    [
        pytest.param(name, mode, marks=[pytest.mark.xfail(reason=KNOWN[name])] if name in KNOWN else [])
        for name, program in PROGRAMS.items()
        for mode in MODES
        if mode not in program.without
    ],
)
def test_turns_of_both_leave_behind_what_java_alone_does(make_turns: MakeTurns, program: str, mode: str) -> None:
    patterns = MODES[mode].patterns

    assert differs(make_turns, program, mode, patterns) == {pattern: [] for pattern in patterns}


def differs(make_turns: MakeTurns, program: str, mode: str, patterns: tuple[str, ...]) -> dict[str, list[str]]:
    """By pattern, what is not as with Java alone."""
    wanted = dict.fromkeys((*map(judge_of, patterns), *patterns))
    turns = {pattern: make_turns(program, MODES[mode]) for pattern in wanted}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pattern: pool.submit(one.play, pattern) for pattern, one in turns.items()}
        outcomes: dict[str, Outcome] = {pattern: done.result() for pattern, done in running.items()}
    return {
        pattern: differences(
            outcomes[judge_of(pattern)],
            outcomes[pattern],
            last_only=MODES[mode].last_only,
            loose=PROGRAMS[program].loose,
            asks_in_any_case=MODES[mode].kill and PROGRAMS[program].foreign_keys,
        )
        for pattern in patterns
    }
