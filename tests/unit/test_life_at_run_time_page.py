"""The code of ``docs/guides/life-at-run-time.md`` runs, and does what the page says."""

from __future__ import annotations

import pytest

from pykstreams import SuspendReason, TopicPartition
from tests.docs.pages import Page

PAGE = Page("docs/guides/life-at-run-time.md")


def test_listener_of_the_page_says_how_much_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    names = PAGE.run(PAGE.code[1:])
    place = TopicPartition("shop-counts-changelog", 2)
    names["Promotions"]().on_update_suspended(place, "counts", 7, 9, SuspendReason.PROMOTED)
    names["Promotions"]().on_update_suspended(place, "counts", 7, 9, SuspendReason.MIGRATED)

    assert capsys.readouterr().out == "counts 2 becomes active, 2 to go\n"
