"""Processes that work for a job."""

from __future__ import annotations

import pytest

from pykstreams.bulk.engines.processes import Pool
from pykstreams.core.errors import DeliveryError


def refuse() -> int:
    raise DeliveryError("a row was not delivered; make it smaller", name="MSG_SIZE_TOO_LARGE")


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_a_process_is_that_of_the_job(processes: int) -> None:
    with pytest.raises(DeliveryError, match="make it smaller") as raised, Pool(processes) as pool:
        pool.run([(refuse, ())], lambda done: None)

    assert raised.value.name == "MSG_SIZE_TOO_LARGE"
