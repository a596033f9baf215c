"""Which files belong to an application, and which of them have changed."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import click
import pytest

from pykstreams.cli.reloading import reloader
from pykstreams.cli.reloading.watched_files import WatchedFiles, files_of_error, told_to, write_states
from pykstreams.dsl.script import ScriptError, load_script
from pykstreams.dsl.stores import table_logic
from pykstreams.serdes import primitives


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules are forgotten after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    return tmp_path


def written(path: Path, text: str, time: int = 1) -> Path:
    path.write_text(text)
    os.utime(path, ns=(time, time))
    return path


def told(report: Path) -> set[str]:
    return {Path(path).name for path in json.loads(report.read_text())}


def test_the_script_and_the_modules_it_has_imported_are_told_and_no_others(folder: Path) -> None:
    written(folder / "reloaded_parts.py", "import re, click")
    script = written(folder / "reloaded_app.py", "import reloaded_parts")
    report = folder / "files.json"
    with told_to(report, f"{script}:build"):
        load_script(f"{script}:build")

    assert {"reloaded_app.py", "reloaded_parts.py"} <= told(report)
    libraries = {os.path.realpath(str(module.__file__)) for module in (re, click, reloader, table_logic, primitives)}
    assert not libraries & json.loads(report.read_text()).keys()


@pytest.mark.parametrize("mistake", ["X = (", "1 / 0"])
def test_a_module_that_could_not_be_imported_is_told_with_a_traceback_of_the_error(
    mistake: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder / "reloaded_broken.py", mistake)
    script = written(folder / "reloaded_other.py", "import reloaded_broken")
    report = folder / "files.json"
    with pytest.raises(ScriptError), told_to(report, str(script)):
        load_script(str(script))

    assert {"reloaded_other.py", "reloaded_broken.py"} <= told(report)
    assert f'{folder / "reloaded_broken.py"}", line 1' in capsys.readouterr().err


def test_files_of_an_error_are_those_it_came_through() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        assert __file__ in files_of_error(error)


def test_nothing_is_told_where_nobody_watches(folder: Path) -> None:
    with told_to(None, "app.py"):
        pass

    assert list(folder.iterdir()) == []


def test_the_script_is_watched_before_anything_is_told(folder: Path) -> None:
    script = written(folder / "app.py", "1")
    files = WatchedFiles(folder / "files.json", str(script))

    assert files.changed() == []

    written(script, "2", time=2)

    assert (files.changed(), files.changed()) == ([str(script)], [])


def test_a_change_between_the_load_and_the_first_look_is_seen(folder: Path) -> None:
    script, part = written(folder / "app.py", "1"), written(folder / "part.py", "1")
    report = folder / "files.json"
    files = WatchedFiles(report, str(script))
    write_states(report, [str(script), str(part)])
    written(part, "2", time=2)

    assert files.changed() == [str(part)]


def test_a_file_that_goes_and_comes_back_has_changed_twice(folder: Path) -> None:
    script = written(folder / "app.py", "1")
    files = WatchedFiles(folder / "files.json", str(script))
    script.unlink()
    gone = files.changed()
    written(script, "1")

    assert (gone, files.changed()) == ([str(script)], [str(script)])


def test_what_has_changed_before_the_next_start_is_no_change_after_it(folder: Path) -> None:
    script = written(folder / "app.py", "1")
    files = WatchedFiles(folder / "files.json", str(script))
    written(script, "2", time=2)
    files.begin()

    assert files.changed() == []
