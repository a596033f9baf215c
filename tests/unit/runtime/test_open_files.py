"""A process that runs an application may have as many files open as its user."""

from __future__ import annotations

import logging
import resource

import pytest

from pykstreams.runtime.open_files import allow_open_files

NO_LIMIT = resource.RLIM_INFINITY


class Limits:
    """The limits of a process."""

    def __init__(self, limit: int, most: int, refusal: Exception | None = None) -> None:
        self.found = limit, most
        self._refusal = refusal

    def get(self, kind: int) -> tuple[int, int]:
        assert kind == resource.RLIMIT_NOFILE
        return self.found

    def set(self, kind: int, limits: tuple[int, int]) -> None:
        if self._refusal is not None:
            raise self._refusal
        self.found = limits


def raised(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> tuple[int, int]:
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    allow_open_files()
    return limits.found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, 4096), (4096, 4096)),
        ((4096, 4096), (4096, 4096)),
        ((256, NO_LIMIT), (10_240, NO_LIMIT)),
        ((20_000, NO_LIMIT), (20_000, NO_LIMIT)),
        ((NO_LIMIT, NO_LIMIT), (NO_LIMIT, NO_LIMIT)),
    ],
)
def test_the_limit_is_raised_as_far_as_it_may_be(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: tuple[int, int]
) -> None:
    assert raised(monkeypatch, Limits(*before)) == after


@pytest.mark.parametrize("refusal", [ValueError("not allowed to raise maximum limit"), OSError("no")])
def test_a_limit_that_cannot_be_raised_stays_and_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refusal: Exception
) -> None:
    with caplog.at_level(logging.INFO):
        assert raised(monkeypatch, Limits(1024, 4096, refusal)) == (1024, 4096)

    assert caplog.messages == [f"no more than 1024 files can be open in this process: {refusal}"]
