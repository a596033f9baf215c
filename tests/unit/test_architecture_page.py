"""``docs/internals/architecture.md`` names files and functions that are there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("|") and ".py`" in line]


def test_every_path_of_the_page_exists() -> None:
    rooms = "core|serdes|state|metrics|topology|processors|dsl|runtime|bulk|http|cli|testing|spark"
    named = set(re.findall(rf"`?\b((?:{rooms})/[\w/]+\.py)", PAGE))

    assert len(named) > 40
    assert not [path for path in sorted(named) if not (ROOT / "pykstreams" / path).is_file()]


def test_every_question_has_one_answer() -> None:
    questions = [row.split("|")[1] for row in PAGE.partition("## Where is")[2].splitlines() if row in ROWS]

    assert [one for one, times in Counter(questions).items() if times > 1] == []


def test_every_decision_is_in_their_list_under_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    records = [one for one in sorted(folder.glob("0*.md")) if one.name != "0000-template.md"]
    titles = [one.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(": ") for one in records]
    rows = [f"| [{title[0]}]({one.name}) | {title[2]} |" for one, title in zip(records, titles, strict=True)]

    assert rows == re.findall(r"^\| \[.*$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("row", ROWS)
def test_names_beside_a_path_are_defined_there(row: str) -> None:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    names = re.findall(r"`([\w.]+)`", cells[-1])
    text = "".join(
        (ROOT / "pykstreams" / path).read_text(encoding="utf-8") for path in re.findall(r"`([\w/]+\.py)`", row)
    )

    for name in names:
        for part in name.split("."):
            assert re.search(rf"^\s*(?:class|def) {part}\b", text, re.MULTILINE), f"{part} is not in {row}"
