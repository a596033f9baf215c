"""What the client library says by itself, and at which level it is passed on."""

from __future__ import annotations

import pytest

from pykstreams.runtime.clients.supplier import LIBRDKAFKA_LOG

REFUSED = (
    "GETPID [shop-1-producer#producer-%d] [thrd:main]: Failed to acquire transactional PID from broker "
    "TxnCoordinator/1: Broker: Not coordinator: retrying"
)


def test_requests_that_the_client_repeats_by_itself_are_no_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        LIBRDKAFKA_LOG.warning(REFUSED, 5)
        LIBRDKAFKA_LOG.warning("GETPID [shop-1-producer#producer-5] [thrd:main]: Failed to acquire PID: fatal")

    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
