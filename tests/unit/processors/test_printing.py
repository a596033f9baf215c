"""What Print writes, where, and when it opens and closes files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pykstreams.processors import Print
from tests.unit.processors.fakes import FakeOperatorContext


def test_print_writes_label_key_and_value_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    process = FakeOperatorContext().start(Print("orders"))

    process("a", 1, 5, ())
    process(None, None, 6, ())

    assert capsys.readouterr().out == "[orders]: a, 1\n[orders]: None, None\n"


def test_print_uses_standard_output_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    process = FakeOperatorContext().start(Print("orders"))
    replaced = io.StringIO()
    monkeypatch.setattr("sys.stdout", replaced)

    process("a", 1, 5, ())

    assert replaced.getvalue() == "[orders]: a, 1\n"


def test_print_with_formatter_writes_its_text_after_the_label(capsys: pytest.CaptureFixture[str]) -> None:
    operator: Print[str, int] = Print("orders", formatter=lambda key, value: f"{key}={value}")

    FakeOperatorContext().start(operator)("a", 1, 5, ())

    assert capsys.readouterr().out == "[orders]: a=1\n"


def test_print_to_a_path_appends_whole_lines_at_once_and_closes_with_the_task(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before\n", encoding="utf-8")
    context = FakeOperatorContext()
    process = context.start(Print("orders", path))

    process("ä", 1, 5, ())

    assert path.read_text(encoding="utf-8") == "before\n[orders]: ä, 1\n"
    context.close()
    process("b", 2, 6, ())
    ((error, *_),) = context.failed
    assert isinstance(error, ValueError), "the file is closed"


def test_print_opens_a_path_only_when_the_task_starts(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    Print("orders", str(path)).build(FakeOperatorContext())

    assert not path.exists()


def test_print_to_an_open_stream_flushes_it_and_leaves_it_open() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    context = FakeOperatorContext()

    context.start(Print("orders", stream))("a", 1, 5, ())
    context.close()

    assert raw.getvalue() == b"[orders]: a, 1\n"
    assert not stream.closed


def test_print_reports_a_formatter_that_raises() -> None:
    context = FakeOperatorContext()

    context.start(Print("orders", formatter=lambda key, value: value["missing"]))("a", {}, 5, ())

    ((error, *record),) = context.failed
    assert isinstance(error, KeyError)
    assert record == ["a", {}, 5, ()]


def test_print_ends_the_record() -> None:
    context = FakeOperatorContext()

    context.start(Print("orders", io.StringIO()))("a", 1, 5, ())

    assert context.forwarded == []
