"""The partition of a group is that of ``GroupCoordinator.partitionFor``; hash codes were made by Java 17."""

import pytest

from tests.brokers.coordinators import offsets_partition


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("eos-lone", 1298883394 % 50),  # -1298883394
        ("alos-lone", 1213536712 % 50),  # -1213536712
        ("ab", 3105 % 50),
        ("polygenelubricants", 0),  # the least number there is, which has no positive
        ("", 0),
    ],
)
def test_partition_of_a_group_is_that_of_its_coordinator(group: str, partition: int) -> None:
    assert offsets_partition(group, 50) == partition
