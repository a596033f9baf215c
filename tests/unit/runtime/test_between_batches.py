"""What workers do between two batches of records for others."""

from __future__ import annotations

import pytest

from pykstreams.runtime.between_batches import BetweenBatches


def test_each_call_is_made_once_a_batch_until_it_is_removed() -> None:
    between, made = BetweenBatches(), list[str]()

    def first() -> None:
        made.append("first")

    between.add(first)
    between.add(lambda: made.append("second"))
    between.run()
    between.remove(first)
    between.run()
    between.remove(first)

    assert made == ["first", "second", "second"]


def test_a_call_that_fails_is_logged_and_not_made_again_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    between, made = BetweenBatches(), list[str]()

    def fails() -> None:
        made.append("failed")
        raise ValueError("no message has this form")

    between.add(fails)
    between.add(lambda: made.append("other"))
    between.run()
    between.run()

    assert made == ["failed", "other", "other"]
    assert "fails" in caplog.text
    assert "no message has this form" in caplog.text
    assert "is not called again" in caplog.text
