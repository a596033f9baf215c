"""The code of ``docs/guides/own-assignor.md`` runs, and its assertions hold."""

from __future__ import annotations

from pykstreams import StreamsConfig
from pykstreams.runtime.membership.assignors.setting import user_assignor
from tests.docs.pages import Page

PAGE = Page("docs/guides/own-assignor.md")


def test_assignor_of_the_page_puts_state_on_large_instances() -> None:
    names = PAGE.run()

    assert len(PAGE.code) == 2
    assert isinstance(user_assignor(StreamsConfig(task_assignor_class=names["StateOnLarge"])), names["StateOnLarge"])
