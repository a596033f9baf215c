"""Those who are served by workers between two batches of records."""

from __future__ import annotations

import pytest

from pykstreams.runtime.between_batches import BetweenBatches


class Guest:
    """A visitor that notes its calls; one of them fails, if it is told which."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[str] = []
        self._fails = fails

    def look(self) -> None:
        self._call("look")

    def rest(self) -> None:
        self._call("rest")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name == self._fails:
            raise ValueError("no message has this form")


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


@pytest.mark.parametrize("call", ["look", "rest"])
def test_a_visitor_that_fails_is_logged_and_called_no_more_and_the_others_are(
    call: str, caplog: pytest.LogCaptureFixture
) -> None:
    between, failing, other = BetweenBatches(), Guest(fails=call), Guest()
    between.add(failing)
    between.add(other)
    for _ in range(2):
        between.look()
        between.rest()

    assert failing.calls == ["look", "rest"][: 1 if call == "look" else 2]
    assert other.calls == ["look", "rest", "look", "rest"]
    assert "Guest" in caplog.text
    assert "no message has this form" in caplog.text
    assert "workers call it no more" in caplog.text
