"""Those who are served by workers between two batches of records."""

from __future__ import annotations

import pytest

from pykstreams.runtime.between_batches import BetweenBatches


class Guest:
    """A visitor that notes its calls, and fails when it is told to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls: list[str] = []
        self._fails = fails

    def look(self) -> None:
        self.calls.append("look")
        if self._fails:
            raise ValueError("no message has this form")

    def rest(self) -> None:
        self.calls.append("rest")


def test_visitors_are_called_until_they_are_removed() -> None:
    between, first, second = BetweenBatches(), Guest(), Guest()
    between.add(first)
    between.add(second)
    between.look()
    between.rest()
    between.remove(first)
    between.look()
    between.remove(first)

    assert first.calls == ["look", "rest"]
    assert second.calls == ["look", "rest", "look"]


def test_a_visitor_that_fails_is_logged_and_called_no_more_and_the_others_are(caplog: pytest.LogCaptureFixture) -> None:
    between, failing, other = BetweenBatches(), Guest(fails=True), Guest()
    between.add(failing)
    between.add(other)
    between.look()
    between.look()
    between.rest()

    assert failing.calls == ["look"]
    assert other.calls == ["look", "look", "rest"]
    assert "Guest" in caplog.text
    assert "no message has this form" in caplog.text
    assert "workers call it no more" in caplog.text
