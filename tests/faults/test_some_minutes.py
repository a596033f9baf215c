"""Some minutes of faults, by night; ``python -m tests.faults`` runs an hour of them."""

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.faults.applications import OURS, applications
from tests.faults.run import Options, Run

JOINS = ("joins", "joins-standbys")
MIXED = ("mixed", "mixed-streams", "joins-mixed")

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.nightly]


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
