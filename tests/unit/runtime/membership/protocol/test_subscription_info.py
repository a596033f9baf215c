"""Subscriptions beside the bytes that Kafka Streams writes, and beside bytes that nobody should."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.subscription_info import (
    RUNNING,
    UNKNOWN_SUM,
    FutureSubscription,
    SubscriptionInfo,
    decode_subscription,
)
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError
from tests.unit.runtime.membership.java_vectors import Said, recorded_user_data, subscription_of
from tests.unit.runtime.membership.protocol.damage import damaged

RECORDED = [pair for pair in recorded_user_data() if pair[0]["ask"] == "subscription"]
PROCESS = ProcessId(uuid.UUID(int=7))
INTS = st.integers(0, 2**31 - 1)
TASKS = st.builds(TaskId, INTS, INTS)
SUMS = st.one_of(st.sampled_from([RUNNING, UNKNOWN_SUM]), st.integers(0, 2**63 - 1))


@st.composite
def subscriptions(draw: st.DrawFn) -> SubscriptionInfo:
    version = draw(st.integers(7, 11))
    return SubscriptionInfo(
        ProcessId(draw(st.uuids())),
        draw(st.dictionaries(TASKS, SUMS, max_size=8)),
        draw(st.none() | st.text(min_size=1)),
        draw(st.integers(-128, 127)) if version >= 8 else 0,
        draw(st.integers(0, 4)) if version >= 9 else 0,
        draw(st.dictionaries(st.text(), st.text(), max_size=4)) if version >= 11 else {},
        version,
        draw(st.integers(version, 20)),
    )


@pytest.mark.parametrize(("said", "java"), RECORDED)
def test_subscriptions_have_the_bytes_of_java(said: Said, java: Said) -> None:
    assert subscription_of(said).encode().hex() == java["bytes"]


@pytest.mark.parametrize(("said", "java"), RECORDED)
def test_subscriptions_of_java_are_read(said: Said, java: Said) -> None:
    assert decode_subscription(bytes.fromhex(java["bytes"])) == subscription_of(said)


@given(subscriptions())
def test_what_was_written_is_read(info: SubscriptionInfo) -> None:
    assert decode_subscription(info.encode()) == info


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    _read_or_refuse(data)


@given(damaged(subscriptions().map(SubscriptionInfo.encode)))
def test_damaged_bytes_are_read_or_malformed(data: bytes) -> None:
    _read_or_refuse(data)


@given(subscriptions(), st.data())
def test_bytes_that_were_cut_off_are_malformed(info: SubscriptionInfo, data: st.DataObject) -> None:
    whole = info.encode()
    with pytest.raises(MalformedUserDataError):
        decode_subscription(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_of_a_later_version_only_the_versions_are_read() -> None:
    assert decode_subscription(bytes.fromhex("0000000c0000000d" + "ff" * 9)) == FutureSubscription(12, 13)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "4 bytes are said to follow"),
        ("00000006", "it is of version 6; update the member"),
        ("0000000b0000000a", "it is of version 11, with 10 as the latest"),
        ("0000000b0000000b" + "00" * 16 + "ffffffff", "-1 bytes are said to follow"),
        ("0000000b0000000b" + "00" * 16 + "00000001ff", "is no UTF-8"),
        ("0000000b0000000b" + "00" * 20 + "7fffffff", "2147483647 entries of at least 18 bytes are said to follow"),
        ("0000000b0000000b" + "00" * 20 + "00000001" + "00" * 16 + "0000", "task 0_0 is of a named topology"),
        ("0000000b0000000b" + "00" * 20 + "00000001" + "ff" * 18, "task -1_-1 is there twice, or is none"),
        ("0000000b0000000b" + "00" * 20 + "00000002" + ("00" * 16 + "ffff") * 2, "task 0_0 is there twice"),
        (SubscriptionInfo(PROCESS, {}).encode().hex() + "00", "1 bytes are left over"),
    ],
)
def test_the_error_says_where_and_what(data: str, problem: str) -> None:
    with pytest.raises(MalformedUserDataError) as error:
        decode_subscription(bytes.fromhex(data))
    assert f"the subscription of {len(data) // 2} bytes cannot be read at byte " in str(error.value)
    assert problem in str(error.value)


@pytest.mark.parametrize(("version", "latest"), [(6, 11), (12, 12), (11, 10)])
def test_versions_that_we_do_not_speak_are_not_written(version: int, latest: int) -> None:
    with pytest.raises(TaskAssignmentError, match=f"a subscription of version {version} with {latest} as the latest"):
        SubscriptionInfo(PROCESS, {}, version=version, latest_version=latest).encode()


def test_numbers_that_do_not_fit_are_not_written() -> None:
    with pytest.raises(TaskAssignmentError, match="the subscription cannot hold 128 in 1 bytes"):
        SubscriptionInfo(PROCESS, {}, unique=128).encode()


def _read_or_refuse(data: bytes) -> None:
    try:
        info = decode_subscription(data)
    except MalformedUserDataError:
        return
    if isinstance(info, SubscriptionInfo):
        assert decode_subscription(info.encode()) == info
