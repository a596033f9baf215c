"""The pytest side of the choice: says which Kafka, and what was not run for want of one, and how to run it.

Invariant: no test that needs a broker is left out without a line at the end of the run that counts it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kafka.choice import Flavour, KafkaChoice, KafkaChoiceError, chosen

CONTROLLING_FIXTURES = frozenset({"start_broker", "three_brokers"})
"""What starts or breaks brokers, and so cannot be had from brokers that somebody else runs."""

_INTEGRATION = Path(__file__).parents[1] / "integration"
_left_out = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_left_out] = 0
    try:
        chosen()
    except KafkaChoiceError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header() -> str:
    return f"kafka: {chosen()}"


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(_INTEGRATION):
        item.add_marker(pytest.mark.integration)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what the chosen Kafka cannot run, after the selection by ``-k`` and ``-m``."""
    impossible = [item for item in items if not can_run(item, chosen())]
    if not impossible:
        return
    if os.environ.get("REQUIRE_KAFKA") == "1":
        raise pytest.UsageError(
            f"REQUIRE_KAFKA=1, but {len(impossible)} tests cannot run with kafka: {chosen()}; "
            + chosen().how_to_run_the_rest()
        )
    config.stash[_left_out] = len(impossible)
    config.hook.pytest_deselected(items=impossible)
    unwanted = set(impossible)
    items[:] = [item for item in items if item not in unwanted]


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
