"""Some minutes of faults, by night; ``python -m tests.faults`` runs an hour of them."""

from pathlib import Path

import pytest

from tests.faults.run import Options, Run
from tests.faults.workers import applications

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.nightly]


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("nodes", [1, 3])
def test_faults_of_brokers_and_workers_end_no_worker_and_lose_nothing(nodes: int, tmp_path: Path) -> None:
    """No worker ends by itself or is silent for too long, and results are those that each guarantee promises."""
    options = Options(seed=20_261_122, length_s=600, nodes=nodes, applications=applications(), rate=50, folder=tmp_path)

    assert Run(options, print).carry_out().failures == {}
