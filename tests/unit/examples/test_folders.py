"""The folders of ``examples/`` have all that an example has, and their pages say what happens."""

from __future__ import annotations

import csv
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from examples.__main__ import main
from examples.flight_delays.flight_delays import Flight, write_history
from examples.pictures import picture
from examples.running import FOLDER, Example, examples, played
from pykstreams.cli.topologies.describe import describe
from pykstreams.cli.workers.run import run

ROOT = FOLDER.parent
EXAMPLES = examples()
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[-\w]+)?\)")
TABLE_OF_PAYMENTS = re.compile(r'sqlite3 payments.db "(create .*)"')


def page(example: Example) -> str:
    return (example.folder / "README.md").read_text(encoding="utf-8")


def blocks(example: Example) -> list[str]:
    return BLOCK.findall(page(example))


def commands(text: str) -> list[str]:
    return [
        line
        for block in BLOCK.findall(text)
        for line in block.splitlines()
        if line.startswith(("python ", "pykstreams "))
    ]


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, with the database that one of the examples writes to."""
    monkeypatch.chdir(tmp_path)
    found = TABLE_OF_PAYMENTS.search(page(EXAMPLES["payments_in_a_database"]))
    assert found is not None
    with closing(sqlite3.connect("payments.db")) as database:
        database.execute(found[1])


def test_each_folder_is_an_example_or_holds_further_scripts() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"}

    assert folders == {*EXAMPLES, "more"}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_folder_has_script_page_data_picture_and_test(example: Example) -> None:
    files = {path.name for path in example.folder.iterdir() if path.is_file()}

    assert files >= {f"{example.name}.py", f"test_{example.name}.py", "README.md", "data.jsonl", "topology.svg"}
    assert set(LINK.findall(page(example))) >= files - {"README.md"}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_picture_is_up_to_date(example: Example) -> None:
    """``python -m examples.pictures`` writes them anew."""
    assert picture(example) == example.picture.read_text(encoding="utf-8")


def test_picture_is_what_pykstreams_describe_draws() -> None:
    example = EXAMPLES["word_count"]
    drawn = CliRunner().invoke(describe, [str(example.script), "--format", "svg"])

    assert drawn.output == example.picture.read_text(encoding="utf-8")


@pytest.mark.usefixtures("in_tmp")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_page_shows_what_comes_of_the_records(example: Example) -> None:
    assert f"python -m examples {example.name}" in page(example)
    assert "".join(f"{line}\n" for line in played(example)) in blocks(example)


@pytest.mark.parametrize("example", [*EXAMPLES.values(), Example(FOLDER)], ids=[*EXAMPLES, "list"])
def test_links_and_commands_of_a_page_lead_to_what_is_there(example: Example) -> None:
    text = page(example)
    scripts = [word for command in commands(text) for word in command.split() if word.endswith(".py")]

    assert commands(text)
    assert [link for link in LINK.findall(text) if not (example.folder / link).exists()] == []
    assert [script for script in scripts if not (ROOT / script).exists()] == []


@pytest.mark.parametrize("example", [*EXAMPLES.values(), Example(FOLDER)], ids=[*EXAMPLES, "list"])
def test_options_of_pykstreams_run_on_a_page_are_known(example: Example) -> None:
    for command in commands(page(example)):
        if command.startswith("pykstreams run "):
            parsed = run.make_context("run", command.split()[2:])

            assert Path(parsed.params["topology"]).stem in EXAMPLES


def test_list_of_examples_has_all_of_them() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[[\w.]+\]\(([\w/.]+)\)", text, re.MULTILINE)

    assert sorted(listed) == sorted(
        [
            *(f"{name}/README.md" for name in EXAMPLES),
            *(str(path.relative_to(FOLDER)) for path in (FOLDER / "more").glob("*.py")),
        ]
    )


def test_command_plays_the_example_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["examples", "word_count"])

    assert main() == 0
    assert capsys.readouterr().out in blocks(EXAMPLES["word_count"])


def test_command_lists_the_examples(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["examples"])

    assert main() == 0
    assert capsys.readouterr().out.split() == list(EXAMPLES)


@pytest.mark.usefixtures("in_tmp")
def test_payments_are_in_the_database_once_however_often_the_records_come() -> None:
    example = EXAMPLES["payments_in_a_database"]
    for _ in range(2):
        list(played(example))
    with closing(sqlite3.connect("payments.db")) as database:
        rows = database.execute("select account, cents from payments").fetchall()

    shown = "".join(f"{account}|{cents}\n" for account, cents in rows)
    assert f'$ sqlite3 payments.db "select account, cents from payments"\n{shown}' in blocks(example)


def test_flights_of_the_data_are_real(tmp_path: Path) -> None:
    write_history(tmp_path / "flights.csv", days=1)
    with (tmp_path / "flights.csv").open() as lines:
        real = [(row["carrier"], row["origin"], row["hour"], row["dep_delay"]) for row in csv.DictReader(lines)]
    cancelled = next(row for row in real if row[3] == "NA")

    sent = [(record.key, Flight(**record.value)) for record in EXAMPLES["flight_delays"].records]
    assert [
        (airline, flight.origin, str(flight.hour), "NA" if flight.dep_delay is None else f"{flight.dep_delay:g}")
        for airline, flight in sent
    ] == [*real[:9], cancelled]
