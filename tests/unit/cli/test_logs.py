"""What is written to standard error: the level is for pykstreams and the user's code, not for other libraries."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

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
    level, handlers = root.level, list(root.handlers)
    yield
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
