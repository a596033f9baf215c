"""The pytest side of the choice: says which Kafka, and what was not run for want of one, and how to run it.

Invariant: no test that needs a broker is left out without a line at the end of the run that counts it.

Where tests run in several processes (``pytest -n``, as ``make test`` does), those that share a broker stay in one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.choice import Flavour, KafkaChoice, KafkaChoiceError, chosen

CONTROLLING_FIXTURES = frozenset({"start_broker", "three_brokers"})
"""What starts or breaks brokers, and so cannot be had from brokers that somebody else runs."""

_INTEGRATION = Path(__file__).parents[1] / "integration"
_left_out = pytest.StashKey[int]()
_LEFT_OUT, _REFUSAL = "tests against Kafka that were left out", "why nothing is run"
"""Under these names the processes that run tests tell the one that started them."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_left_out] = 0
    config.addinivalue_line("markers", "xdist_group(name): runs in one process with all others of that name")
    try:
        chosen()
    except KafkaChoiceError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header() -> str:
    return f"kafka: {chosen()}"


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(_INTEGRATION):
        item.add_marker(pytest.mark.integration)
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))


def _group(item: pytest.Item) -> str | None:
    """What must run in one process: all that use the shared broker, and each module with a cluster of three."""
    fixtures = getattr(item, "fixturenames", ())
    if "three_brokers" in fixtures:
        return item.path.stem
    return None if "start_broker" in fixtures else "shared broker"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what the chosen Kafka cannot run, after the selection by ``-k`` and ``-m``."""
    impossible = [item for item in items if not can_run(item, chosen())]
    if not impossible:
        return
    told = getattr(config, "workeroutput", None)  # not there unless this process runs tests for another
    if os.environ.get("REQUIRE_KAFKA") == "1":
        refusal = (
            f"REQUIRE_KAFKA=1, but {len(impossible)} tests cannot run with kafka: {chosen()}; "
            + chosen().how_to_run_the_rest()
        )
        if told is None:
            raise pytest.UsageError(refusal)
        told[_REFUSAL] = refusal
        items.clear()
        return
    config.stash[_left_out] = len(impossible)
    if told is not None:
        told[_LEFT_OUT] = len(impossible)
    config.hook.pytest_deselected(items=impossible)
    unwanted = set(impossible)
    items[:] = [item for item in items if item not in unwanted]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over what a process has left out; each of them collects all tests, and leaves out the same."""
    if refusal := node.workeroutput.get(_REFUSAL):
        raise pytest.UsageError(refusal)
    node.config.stash[_left_out] = node.workeroutput.get(_LEFT_OUT, 0)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if count := config.stash[_left_out]:
        terminalreporter.write_line(
            f"NOT RUN: {count} tests against Kafka (kafka: {chosen()}); to run them, {chosen().how_to_run_the_rest()}",
            yellow=True,
            bold=True,
        )


def can_run(item: pytest.Item, choice: KafkaChoice) -> bool:
    """Whether a test has the Kafka it needs."""
    if item.get_closest_marker("integration") is None:
        return True
    match choice.flavour:
        case Flavour.NONE:
            return False
        case Flavour.GIVEN:
            return CONTROLLING_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
        case Flavour.DOCKER | Flavour.LOCAL:
            return True
