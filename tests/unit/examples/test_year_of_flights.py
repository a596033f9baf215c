"""The page of ``flight_delays`` says what comes of a whole year."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest

from examples.flight_delays.flight_delays import main, results
from examples.running import examples

PAGE = (examples()["flight_delays"].folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_year_of_the_page_is_that_of_the_backfill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["flight_delays.py", str(tmp_path)])
    main()
    found = results(tmp_path / "backfill")

    assert f"```\n{capsys.readouterr().out}```\n" in PAGE
    for place in ("JFK 06h", "JFK 21h"):
        assert f'{{"key":"{place}","value":{orjson.dumps(found[place]).decode()},' in PAGE
