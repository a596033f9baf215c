"""The checker from outside sees what is lost, repeated, out of order, or too low."""

from collections import Counter

import pytest

from tests.faults.checks import (
    Result,
    Results,
    check_letters,
    check_lines,
    check_state,
    counts_not_too_low,
    exact_counts,
    window_key,
)


def results(*counts: int, key: str = "g") -> Results:
    return {key: [Result(count, 1_700_000_000_000 + count) for count in counts]}


LINES = {"a": ["1|g", "2|h"], "b": ["1|g"]}


def test_lines_that_came_out_once_in_order_are_right() -> None:
    assert check_lines(LINES, LINES, exactly_once=True) == []


@pytest.mark.parametrize("exactly_once", [True, False])
def test_lost_line_is_wrong_under_both_guarantees(exactly_once: bool) -> None:
    [wrong] = check_lines({"a": ["1|g"], "b": ["1|g"]}, LINES, exactly_once=exactly_once)

    assert "1 of 3 lost" in wrong


@pytest.mark.parametrize("found", [["1|g", "1|g", "2|h"], ["2|h", "1|g"]])
def test_repeated_and_disordered_lines_are_wrong_under_exactly_once_only(found: list[str]) -> None:
    values = {**LINES, "a": found}

    assert check_lines(values, LINES, exactly_once=False) == []
    assert len(check_lines(values, LINES, exactly_once=True)) == 1


@pytest.mark.parametrize("found", [[1, 2], [1, 2, 2, 3], [1, 3, 2], [1, 2, 3, 4], [2, 3], []])
def test_counts_other_than_each_once_in_order_are_wrong_under_exactly_once(found: list[int]) -> None:
    assert exact_counts({"g": 3}, results(1, 2, 3)) == []
    assert len(exact_counts({"g": 3}, results(*found))) == 1


def test_key_that_nobody_sent_is_wrong_under_exactly_once() -> None:
    assert len(exact_counts({"g": 1}, {**results(1), **results(1, key="h")})) == 1


def test_last_count_may_be_too_high_and_not_too_low_under_at_least_once() -> None:
    assert counts_not_too_low({"g": 3}, results(1, 2, 1, 2, 3, 4)) == []
    assert len(counts_not_too_low({"g": 3}, results(1, 2, 3, 2))) == 1
    assert len(counts_not_too_low({"g": 3}, {})) == 1


def test_state_is_exact_under_exactly_once_and_not_too_low_otherwise() -> None:
    assert check_state({"g": 3}, results(4), exactly_once=False) == []
    assert len(check_state({"g": 3}, results(2), exactly_once=False)) == 1
    assert len(check_state({"g": 3}, results(4), exactly_once=True)) == 1
    assert check_state({"g": 3}, results(3), exactly_once=True) == []


def test_window_in_a_changelog_has_the_name_of_the_results() -> None:
    key = b"k1" + (1_700_000_000_000).to_bytes(8, "big") + bytes(4)

    assert window_key(key) == "k1@1700000000000"


def test_every_poisoned_record_must_be_a_dead_letter() -> None:
    poison = Counter({b"poison 1": 1, b"poison 2": 1})

    assert check_letters(poison, poison, exactly_once=True) == []
    [wrong] = check_letters(poison, Counter({b"poison 1": 1}), exactly_once=False)
    assert wrong.startswith("1 of 2 poisoned records are not there: [b'poison 2']")


def test_a_record_that_can_be_processed_must_not_be_a_dead_letter() -> None:
    [wrong] = check_letters(Counter(), Counter({b"7|g": 1}), exactly_once=False)

    assert "that can be processed: [b'7|g']" in wrong


def test_a_dead_letter_may_be_repeated_under_at_least_once_only() -> None:
    poison, letters = Counter({b"poison": 1}), Counter({b"poison": 3})

    assert check_letters(poison, letters, exactly_once=False) == []
    assert check_letters(poison, letters, exactly_once=True) == ["2 are there more than once: [b'poison']"]
