"""What is written to standard error: the level is for pykstreams and the user's code, not for other libraries."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from pykstreams.cli.app import cli
from pykstreams.cli.logs import configure_logging

LIBRARY = """
import logging
def work():
    for level in ("debug", "info", "warning"):
        getattr(logging.getLogger(__name__), level)("%s of %s", level, __name__)
"""


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers, hook = root.level, list(root.handlers), sys.excepthook
    yield
    sys.excepthook = hook
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def make_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], ModuleType]:
    def make(folder: str, name: str) -> ModuleType:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / f"{name}.py").write_text(LIBRARY)
        monkeypatch.syspath_prepend(tmp_path / folder)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return make


@pytest.mark.parametrize(("level", "shown"), [("debug", ["debug", "info", "warning"]), ("info", ["info", "warning"])])
def test_the_level_is_for_pykstreams_and_the_users_code(
    level: str, shown: list[str], make_module: Callable[[str, str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(level, None, "shop_logging.topology:build")

    for folder, name in (
        ("lib/site-packages", "library_logging"),
        ("lib/site-packages", "shop_logging"),
        ("jobs", "neighbour_logging"),
    ):
        make_module(folder, name).work()
    logging.getLogger("pykstreams.x").debug("debug of pykstreams")

    said = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "warning of library_logging",
        *(f"{one} of shop_logging" for one in shown),
        *(f"{one} of neighbour_logging" for one in shown),
        *(["debug of pykstreams"] if level == "debug" else []),
    ]


def test_a_library_is_not_heard_below_the_level(
    make_module: Callable[[str, str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("error", None, "job.py")

    make_module("lib/site-packages", "library_logging").work()

    assert capsys.readouterr().err == ""


def test_a_worker_is_named_in_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", 3, "job.py")

    logging.getLogger("pykstreams.x").info("hello")

    assert capsys.readouterr().err.endswith(" INFO    [worker 3] pykstreams.x: hello\n")


def test_the_level_of_libraries_is_apart(
    make_module: Callable[[str, str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("error", None, "job.py", libraries="info")

    make_module("lib/site-packages", "library_logging").work()
    make_module("jobs", "neighbour_logging").work()

    said = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["info of library_logging", "warning of library_logging"]


def json_lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_json_is_one_object_a_line_with_the_exception_as_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", 3, "job.py", form="json")

    logging.getLogger("pykstreams.x").info("größe %s\nof two lines", 1)
    try:
        raise ValueError("bad")
    except ValueError:
        logging.getLogger("pykstreams.x").exception("failed")

    first, second = json_lines(capsys)
    assert datetime.fromisoformat(str(first.pop("time"))).utcoffset() == timedelta()
    assert first == {
        "level": "info",
        "logger": "pykstreams.x",
        "message": "größe 1\nof two lines",
        "thread": "MainThread",
        "worker": 3,
    }
    assert second["level"] == "error"
    assert str(second["exception"]).startswith("Traceback")
    assert str(second["exception"]).endswith("ValueError: bad")


def test_an_error_that_nobody_expects_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", None, "job.py", form="json")

    error = RuntimeError("bad")
    sys.excepthook(RuntimeError, error, None)

    (line,) = json_lines(capsys)
    assert line["message"] == "the program ends with RuntimeError: bad"
    assert "worker" not in line


@pytest.mark.parametrize("level", ["debug", "info"])
def test_an_error_of_ours_that_ends_the_program_is_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """Its text is there once, as on a terminal; the traceback, which ends with it, is for those who look for more."""
    monkeypatch.chdir(tmp_path)
    named = ["--application-id", "a", "--bootstrap-servers", "one:1"]
    with pytest.raises(SystemExit) as ended:
        cli(["run", "missing.py", "--log-format", "json", "--log-level", level, *named])

    assert ended.value.code == 2
    (line,) = json_lines(capsys)
    said = str(line["message"])
    assert line["level"] == "error"
    assert said.startswith("ScriptError: ")
    assert "missing.py" in said
    assert ("exception" in line) is (level == "debug")
