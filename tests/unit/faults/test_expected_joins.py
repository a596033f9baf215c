"""Results of joins are made of the input alone, and the checker sees what is lost, repeated, or must not be there."""

import pytest
from confluent_kafka import Message

from tests.faults.expected_joins import ExpectedJoins, check_links, check_results
from tests.faults.topics import NEAR_MS, Output


class Record:
    """What is read of a message."""

    def __init__(self, key: str, value: str | int, at: int) -> None:
        self._key, self._at = key, at
        self._value = value.to_bytes(8, "big") if isinstance(value, int) else value.encode()

    def key(self) -> bytes:
        return self._key.encode()

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return (1, self._at)


def expected(
    lines: list[Record],
    notes: list[Record] | None = None,
    answers: list[Record] | None = None,
    rates: list[Record] | None = None,
) -> ExpectedJoins:
    topics: list[list[Message]] = [lines, notes or [], answers or [], rates or []]  # type: ignore[list-item]
    return ExpectedJoins.of(*topics)


def test_lines_and_answers_that_are_near_are_pairs_and_others_come_out_alone() -> None:
    found = expected(
        [Record("a", "1|g", 1000), Record("a", "2|g", 5000)],
        answers=[Record("a", "1", 1000 + NEAR_MS), Record("a", "2", 1001 + NEAR_MS), Record("b", "1", 1000)],
    )

    assert {key: sorted(values) for key, values in found.pairs.items()} == {
        "a": ["1|g+1", "2|g+None", "None+2"],
        "b": ["None+1"],
    }


def test_a_line_has_the_rate_of_its_time() -> None:
    found = expected(
        [Record("a", f"{at}|g", at) for at in (9, 10, 11, 20)], rates=[Record("a", "1", 10), Record("a", "2", 20)]
    )

    assert found.rated == {"a": ["9|g+None", "10|g+1", "11|g+1", "20|g+2"]}


def test_keys_that_move_time_on_have_no_results() -> None:
    found = expected([Record("end1", "1|end", 9)])

    assert found.pairs == {}
    assert found.check(Output.PAIRS, {"end1": ["1|end+None"]}, exactly_once=True) == []


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_lost_result_is_wrong_under_both_guarantees(exactly_once: bool) -> None:
    [wrong] = check_results({"a": ["1", "2"]}, {"a": ["1"]}, exactly_once=exactly_once)

    assert wrong == "1 of 2 are lost: [('a', '2')]"


@pytest.mark.parametrize("found", [["1", "1", "2"], ["1", "2", "3"], ["2", "1"]])
def test_repeated_invented_and_disordered_results_are_wrong_under_exactly_once_only(found: list[str]) -> None:
    assert check_results({"a": ["1", "2"]}, {"a": found}, exactly_once=False) == []
    assert len(check_results({"a": ["1", "2"]}, {"a": found}, exactly_once=True)) == 1


def test_results_that_wait_for_their_time_may_come_in_any_order() -> None:
    assert check_results({"a": ["1", "2"]}, {"a": ["2", "1"]}, exactly_once=True, in_order=False) == []


LINES, NOTES = {"a": ["1|g", "2|h"]}, {"g": 3, "h": 5}


def test_links_may_pass_over_a_line_and_follow_its_notes() -> None:
    found = ["1|g+1", "1|g+3", "2|h+4", "2|h+5"]

    assert check_links(LINES, NOTES, {"a": found}, exactly_once=True) == []
    assert check_links(LINES, NOTES, {"a": ["2|h+5"]}, exactly_once=True) == []


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize("found", [[], ["1|g+3"], ["2|h+4"]])
def test_the_last_link_must_be_that_of_the_last_line_and_note(found: list[str], exactly_once: bool) -> None:
    [wrong] = check_links(LINES, NOTES, {"a": found}, exactly_once=exactly_once)

    assert "not '2|h+5'" in wrong


@pytest.mark.parametrize("found", [["2|h+5", "2|h+5"], ["2|h+4", "1|g+3", "2|h+5"], ["3|x+1", "2|h+5"]])
def test_links_that_are_repeated_go_back_or_are_of_no_line_are_wrong_under_exactly_once_only(found: list[str]) -> None:
    assert check_links(LINES, NOTES, {"a": found}, exactly_once=False) == []
    assert len(check_links(LINES, NOTES, {"a": found}, exactly_once=True)) == 1


def test_each_output_of_joins_has_its_check() -> None:
    found = expected([Record("a", "1|g", 10)], notes=[Record("g", 7, 10)])

    assert found.check(Output.LINKED, {"a": ["1|g+7"]}, exactly_once=True) == []
    assert found.check(Output.PAIRS, {"a": ["1|g+None"]}, exactly_once=True) == []
    assert found.check(Output.RATED, {"a": ["1|g+None"]}, exactly_once=True) == []
    with pytest.raises(ValueError, match="mapped is not the output of a join"):
        found.check(Output.MAPPED, {}, exactly_once=True)
