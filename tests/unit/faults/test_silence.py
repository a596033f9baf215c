"""Which gaps between results are too long, and which are explained by outages."""

from tests.faults.silence import EVERYBODY, Gap, Gaps, Outage, Outages, silences, unexplained

PLACE = ("eos-lone", "counts", 0)


def gap(start: float, end: float, partition: int = 0) -> Gap:
    return Gap(("eos-lone", "counts", partition), start, end)


def outage(start: float, end: float, scope: str = EVERYBODY) -> Outage:
    return Outage(scope, start, end, "kafka kill")


def test_gap_begins_with_input_that_has_no_result_yet_and_ends_with_a_result() -> None:
    gaps = Gaps(shortest_s=15)
    gaps.input([PLACE], 100)
    gaps.input([PLACE], 110)
    gaps.result(PLACE, 120)

    assert gaps.found == [Gap(PLACE, 100, 120)]
    assert gaps.longest("eos-lone") == 20


def test_time_without_input_is_no_gap() -> None:
    gaps = Gaps(shortest_s=15)
    gaps.input([PLACE], 100)
    gaps.result(PLACE, 101)
    gaps.result(PLACE, 200)

    assert gaps.found == []


def test_silence_without_an_outage_is_too_long_after_what_is_allowed() -> None:
    silence = unexplained(gap(100, 120), [], allowed_s=15)

    assert silence is not None
    assert silence.too_long_s == 5
    assert unexplained(gap(100, 115), [], allowed_s=15) is None


def test_outage_explains_silence_while_it_lasts_and_so_long_after_it() -> None:
    assert unexplained(gap(100, 155), [outage(101, 140)], allowed_s=15) is None
    assert unexplained(gap(100, 156), [outage(101, 140)], allowed_s=15) is not None


def test_outage_that_begins_when_silence_is_too_long_already_explains_nothing() -> None:
    before, late, after = outage(90, 95), outage(120, 145), outage(150, 151)

    silence = unexplained(gap(100, 150), [before, late, after], allowed_s=15)

    assert silence is not None
    assert silence.allowed_until == 115
    assert silence.within == (late,)


def test_outages_that_follow_each_other_explain_silence_together() -> None:
    assert unexplained(gap(100, 170), [outage(101, 110), outage(124, 130), outage(140, 156)], allowed_s=15) is None


def test_outage_of_another_application_concerns_nobody_else() -> None:
    outages = Outages(lambda: 0)
    outages.note("eos-lone", 30, 40, "killed")
    outages.note("alos-lone", 10, 20, "killed")
    outages.note(EVERYBODY, 5, 6, "broker")

    assert [(one.start, one.scope) for one in outages.of("eos-lone")] == [(5, EVERYBODY), (30, "eos-lone")]


def test_silences_of_the_same_time_are_told_once_the_longest_first() -> None:
    found = silences([gap(100, 150, 0), gap(110, 160, 1), gap(300, 320, 2)], [])

    assert [[one.gap.place[2] for one in together] for together in found] == [[0, 1], [2]]
