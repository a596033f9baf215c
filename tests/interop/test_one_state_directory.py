"""Java and Python with one ``state.dir``: each keeps to its own folder in it, and disturbs the other in nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pykstreams.state.directory.state_directory import OWN_FOLDER
from tests.interop.conftest import MakeTurns
from tests.interop.modes import MODES, judge_of
from tests.interop.outcome import differences


@pytest.mark.parametrize("pattern", ["JPJP", pytest.param("PJPJ", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("program", ["count", pytest.param("inner_foreign_key_join", marks=pytest.mark.nightly)])
def test_turns_in_one_state_directory_leave_behind_what_java_alone_does(
    make_turns: MakeTurns, program: str, pattern: str
) -> None:
    shared = make_turns(program, MODES["kept"], one_state_directory=True)
    java = make_turns(program, MODES["kept"])
    with ThreadPoolExecutor() as pool:
        outcome, judged = pool.map(lambda turn: turn[0].play(turn[1]), [(shared, pattern), (java, judge_of(pattern))])

    assert differences(judged, outcome, last_only=False, loose=False) == []
    assert folders(shared.folder / "state") == {shared.name, OWN_FOLDER}


def folders(directory: Path) -> set[str]:
    return {one.name for one in directory.iterdir() if one.is_dir()}
