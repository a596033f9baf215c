"""The input of a task: what waits in it, and what is still on the brokers."""

from __future__ import annotations

import pytest

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.tasks.inputs.task_input import TaskInput

ORDERS, PRICES = TopicPartition("orders", 0), TopicPartition("prices", 0)


@pytest.mark.parametrize(
    ("lags", "unread", "may_be_unread"),
    [
        ({ORDERS: 0, PRICES: 0}, 0, False),
        ({ORDERS: 3, PRICES: 4}, 7, True),
        ({ORDERS: None, PRICES: 0}, 0, True),
        ({ORDERS: None, PRICES: 4}, 4, True),
    ],
)
def test_what_brokers_have_not_told_of_is_not_counted_but_may_be_there(
    lags: dict[TopicPartition, int | None], unread: int, may_be_unread: bool
) -> None:
    found = TaskInput([ORDERS, PRICES], lags.__getitem__)

    assert (found.unread(), found.may_be_unread()) == (unread, may_be_unread)


def test_without_brokers_to_ask_nothing_is_unread() -> None:
    found = TaskInput([ORDERS], None)

    assert (found.unread(), found.may_be_unread(), len(found)) == (0, False, 0)
