"""Assignments beside the bytes that Kafka Streams writes, and beside bytes that nobody should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo, decode_assignment
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError
from tests.unit.runtime.membership.java_vectors import Said, assignment_of, recorded_user_data
from tests.unit.runtime.membership.protocol.damage import damaged

RECORDED = [pair for pair in recorded_user_data() if pair[0]["ask"] == "assignment"]
EMPTY = "0000000b0000000b"
INTS = st.integers(0, 2**31 - 1)
TASKS = st.builds(TaskId, INTS, INTS)
PLACES = st.frozensets(st.builds(TopicPartition, st.text(max_size=9), INTS), max_size=6)
HOSTS = st.dictionaries(st.builds(HostInfo, st.text(max_size=9), INTS), PLACES, max_size=3)
ASSIGNMENTS = st.builds(
    AssignmentInfo,
    st.lists(TASKS, max_size=8).map(tuple),
    st.dictionaries(TASKS, PLACES, max_size=4),
    HOSTS,
    HOSTS,
    st.integers(0, 4),
    st.integers(0, 2**63 - 1),
    st.integers(7, 11),
    st.integers(7, 11),
)


@pytest.mark.parametrize(("said", "java"), RECORDED)
def test_assignments_have_the_bytes_of_java(said: Said, java: Said) -> None:
    assert assignment_of(said).encode().hex() == java["bytes"]


@pytest.mark.parametrize(("said", "java"), RECORDED)
def test_assignments_of_java_are_read(said: Said, java: Said) -> None:
    assert decode_assignment(bytes.fromhex(java["bytes"])) == assignment_of(said)


@given(ASSIGNMENTS)
def test_what_was_written_is_read(info: AssignmentInfo) -> None:
    assert decode_assignment(info.encode()) == info


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    _read_or_refuse(data)


@given(damaged(ASSIGNMENTS.map(AssignmentInfo.encode)))
def test_damaged_bytes_are_read_or_malformed(data: bytes) -> None:
    _read_or_refuse(data)


@given(ASSIGNMENTS, st.data())
def test_bytes_that_were_cut_off_are_malformed(info: AssignmentInfo, data: st.DataObject) -> None:
    whole = info.encode()
    with pytest.raises(MalformedUserDataError):
        decode_assignment(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "4 bytes are said to follow"),
        ("0000000c", "it is of version 12, and this release reads 7 to 11"),
        (EMPTY + "00000001" + "00" * 8 + "00000001", "task 0_0 is of a named topology"),
        (EMPTY + "00000001" + "ff" * 8 + "00000000", "-1_-1 is no task"),
        (EMPTY + "80000000", "-2147483648 entries of at least 12 bytes are said to follow"),
        (EMPTY + "00" * 4 + "00000002" + "00" * 32, "the standby task 0_0 is there twice"),
        (EMPTY + "00" * 4 + "00000001" + "00" * 12 + "00000002" + "00" * 12, "of the partitions -0, -0 one is there"),
        (EMPTY + "00" * 8 + "00000002" + "00" * 12, "topic 0 is there twice"),
        (EMPTY + "00" * 12 + "00000002" + "00" * 20, "the host :0 is there twice"),
        (EMPTY + "00" * 12 + "00000001" + "00" * 6 + "00000001" + "00" * 8, "there is no topic 0"),
        (AssignmentInfo().encode().hex() + "00", "1 bytes are left over"),
    ],
)
def test_the_error_says_where_and_what(data: str, problem: str) -> None:
    with pytest.raises(MalformedUserDataError) as error:
        decode_assignment(bytes.fromhex(data))
    assert f"the assignment of {len(data) // 2} bytes cannot be read at byte " in str(error.value)
    assert problem in str(error.value)


@pytest.mark.parametrize("version", [6, 12])
def test_versions_that_we_do_not_speak_are_not_written(version: int) -> None:
    with pytest.raises(TaskAssignmentError, match=f"an assignment of version {version} cannot be written"):
        AssignmentInfo(version=version).encode()


def test_names_that_do_not_fit_are_not_written() -> None:
    hosts = {HostInfo("h" * 65_536, 1): frozenset[TopicPartition]()}
    with pytest.raises(TaskAssignmentError, match="takes 65536 bytes; a name takes 65535 at most"):
        AssignmentInfo(hosts=hosts).encode()


def _read_or_refuse(data: bytes) -> None:
    try:
        info = decode_assignment(data)
    except MalformedUserDataError:
        return
    assert decode_assignment(info.encode()) == info
