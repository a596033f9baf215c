"""Five minutes of faults, and more of them by night; ``python -m tests.faults`` runs an hour."""

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.faults.applications import OURS, applications
from tests.faults.run import Options, Run
from tests.faults.schedule import Action

JOINS = ("joins", "joins-standbys")
MIXED = ("mixed", "mixed-streams", "joins-mixed")

BESIDE_OTHER_TESTS_S = 60.0
"""So long results may stay away beyond an outage on a machine that runs other tests meanwhile."""

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.timeout(900)
def test_five_minutes_of_faults_end_no_worker_and_lose_nothing(tmp_path: Path) -> None:
    """Of all faults but cut networks, which have a hole under at-least-once (docs/reference/differences.md).

    A broker that skips the markers of a transaction leaves it open for ever: that is no fault of a worker.
    """
    options = Options(
        seed=20_261_129,
        length_s=300,
        nodes=1,
        applications=[one for one in applications(several=2) if one.name in ("alos-lone", "eos-several")],
        rate=20,
        folder=tmp_path,
        wanted=[action for action in Action if action is not Action.CUT],
        allowed_s=BESIDE_OTHER_TESTS_S,
    )

    report = Run(options, print).carry_out()

    of_kafka = [name for name in report.failures if report.skipped_markers and name.startswith("eos-")]
    assert [name for name in report.failures if name not in of_kafka] == [], report.failures
    assert report.faults.total() > 15


@pytest.mark.nightly
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    ("nodes", "fleets"),
    [(1, OURS), (3, OURS), (3, JOINS), (3, MIXED)],
    ids=["one broker", "three brokers", "joins", "with Java"],
)
def test_faults_of_brokers_and_workers_end_no_worker_and_lose_nothing(
    nodes: int, fleets: Collection[str], tmp_path: Path
) -> None:
    """No worker ends by itself or is silent for too long, and results are those that each guarantee promises."""
    wanted = [one for one in applications() if one.name.partition("-")[2] in fleets]
    options = Options(seed=20_261_122, length_s=600, nodes=nodes, applications=wanted, rate=50, folder=tmp_path)

    assert Run(options, print).carry_out().failures == {}
