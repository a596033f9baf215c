"""Pictures of pages show what their code makes."""

from __future__ import annotations

import re

import pytest

from docs.pictures import concepts
from pykstreams import StreamsConfig
from tests.docs.pages import ROOT, Page, pages
from tests.docs.shop import quickstart_shop

PICTURE = ROOT / "docs" / "pictures" / "quickstart-topology.svg"
CONCEPTS = [page for page in pages() if page.path.startswith("docs/concepts/")]


def topology_of_the_quickstart() -> str:
    """The topology of ``shop.py`` as its page has it first, drawn."""
    drawn: str = quickstart_shop().build().to_svg()
    return drawn


def pictures_of(page: Page) -> list[str]:
    return re.findall(r"!\[[^\]]+\]\(../pictures/([^)]+)\)", page.text)


def test_picture_of_the_quickstart_is_current() -> None:
    """``python -m tests.docs.test_pictures`` draws it anew."""
    assert topology_of_the_quickstart() == PICTURE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", concepts.PICTURES)
def test_pictures_of_the_concepts_are_current(name: str) -> None:
    """``python -m docs.pictures.concepts`` draws them anew."""
    assert concepts.PICTURES[name]() == (concepts.FOLDER / name).read_text(encoding="utf-8")


def test_every_picture_of_the_concepts_is_shown() -> None:
    assert {name for page in CONCEPTS for name in pictures_of(page)} >= set(concepts.PICTURES)


@pytest.mark.parametrize("page", CONCEPTS, ids=str)
def test_a_page_of_concepts_has_a_picture(page: Page) -> None:
    assert pictures_of(page)


def test_topics_of_the_pictures_are_those_of_the_quickstart() -> None:
    plan = quickstart_shop().build().plan(StreamsConfig({"application.id": "shop"}))

    assert {topic.name for topic in plan.internal_topics} == {concepts.REPARTITION, concepts.CHANGELOG}


@pytest.mark.parametrize("workers", range(1, 10))
def test_workers_have_no_more_than_a_task_more_than_others(workers: int) -> None:
    shares = [len(share) for share in concepts.assigned(workers)]

    assert sum(shares) == 2 * concepts.PARTITIONS
    assert max(shares) - min(shares) <= 1


if __name__ == "__main__":
    PICTURE.write_text(topology_of_the_quickstart(), encoding="utf-8")
