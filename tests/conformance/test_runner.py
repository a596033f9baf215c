"""The runner itself: values, functions, refused fields, and what it says about differences."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conformance import functions
from tests.conformance.__main__ import main
from tests.conformance.areas import HERE
from tests.conformance.compare import compare
from tests.conformance.errors import FormatError, ThrownError
from tests.conformance.fields import check
from tests.conformance.generate import generate
from tests.conformance.templates.catalogue import TEMPLATES, chosen
from tests.conformance.templates.scenario import steps
from tests.conformance.values import Float, Int, Short, decode, encode, text, topic_bytes, wrap


@pytest.mark.parametrize(
    ("typed", "raw"),
    [
        (None, None),
        ("", ""),
        ("ä", "c3a4"),
        ({"long": -1}, "ffffffffffffffff"),
        ({"int": 5}, "00000005"),
        ({"short": 5}, "0005"),
        ({"double": 1.5}, "3ff8000000000000"),
        ({"float": 1.5}, "3fc00000"),
        ({"bool": True}, "01"),
        ({"hex": "00ff"}, "00ff"),
        ({"uuid": "00112233-4455-6677-8899-aabbccddeeff"}, b"00112233-4455-6677-8899-aabbccddeeff".hex()),
        ({"time_windowed": {"key": "a", "start": 1}}, "610000000000000001"),
        ({"session_windowed": {"key": "a", "start": 1, "end": 2}}, "6100000000000000020000000000000001"),
    ],
)
def test_typed_values_have_the_bytes_of_section_2(typed: Any, raw: str | None) -> None:
    found = topic_bytes(typed)

    assert raw == (None if found is None else found.hex())


@pytest.mark.parametrize(
    "typed",
    ["a", None, {"long": 5}, {"int": 5}, {"short": 5}, {"double": 1.5}, {"float": 0.1}, {"bool": False}, {"hex": ""}],
)
def test_decoding_and_encoding_keeps_the_type(typed: Any) -> None:
    assert typed == encode(decode(typed))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (Int(5), "5"),
        (Short(-5), "-5"),
        (3.0, "3.0"),
        (-0.25, "-0.25"),
        (100000.0, "100000.0"),
        (1e7, "1.0E7"),
        (1.25e-5, "1.25E-5"),
        (Float(0.10000000149011612), "0.1"),
        (b"\x00\xff", "00ff"),
    ],
)
def test_texts_of_values_are_those_of_section_7(value: Any, shown: str) -> None:
    assert shown == text(value)


@pytest.mark.parametrize(
    ("spec", "value", "result"),
    [
        ("add:5", Int(2**31 - 1), {"int": -(2**31) + 4}),
        ("add:1", 2**63 - 1, {"long": -(2**63)}),
        ("mul:2", 1.5, {"double": 3.0}),
        ("add:1", "41", {"long": 42}),
        ("to_int", 2**32 + 1, {"int": 1}),
        ("to_long", 2.9, {"long": 2}),
        ("length", "a\U0001f600", {"long": 3}),
        ("part:-1:|", "a|b", "b"),
        ("part:0:,", "", ""),
        ("const:a:b", None, "a:b"),
        (["part:0:|", "null_if_eq:a", "or_else:x"], "a|b", "x"),
        ("append:", None, None),
    ],
)
def test_selectors_compute_as_the_table_says(spec: Any, value: Any, result: Any) -> None:
    assert result == encode(functions.selector(spec)("k", value))


def test_numbers_are_parsed_as_strictly_as_by_java() -> None:
    assert functions.num("+7") == 7
    for bad in (" 7", "1_0", "7.0", "", str(2**63)):
        with pytest.raises(ValueError, match="64-bit integer"):
            functions.num(bad)


def test_throwing_functions_raise_their_message() -> None:
    with pytest.raises(ThrownError, match=r"^a:b$"):
        functions.selector("throw:a:b")("k", "v")


def test_unknown_functions_are_refused_before_anything_runs() -> None:
    for make in (functions.selector, functions.predicate, functions.aggregator, functions.reducer):
        with pytest.raises(FormatError, match="nonsense"):
            make("nonsense:1")


def test_wrapping_cuts_to_a_signed_number() -> None:
    assert [wrap(2**31, 32), wrap(-(2**31) - 1, 32)] == [-(2**31), 2**31 - 1]


def _case(**changes: Any) -> dict[str, Any]:
    stream = {"id": "s", "op": "stream", "topic": "in"}
    return {"name": "c", "topology": [stream], "steps": [], "expect": {}} | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nmae": "c"}, "unknown field 'nmae' in the case"),
        ({"topology": [{"id": "s", "op": "stream", "topc": "in"}]}, "unknown field 'topc' in stream 's'"),
        ({"topology": [{"id": "s", "op": "strem"}]}, "unknown op 'strem'"),
        (
            {"topology": [{"id": "s", "op": "stream", "topic": "in", "consumed": {"serde": "long"}}]},
            "unknown field 'serde' in consumed of 's'",
        ),
        ({"topology": [{"id": "s", "op": "stream"}, {"id": "s", "op": "stream"}]}, "repeated id 's'"),
        ({"steps": [{"pipe": {"topic": "in", "tss": 5}}]}, "unknown field 'tss' in pipe"),
        ({"steps": [{"query_store": {"store": "st", "opp": "all"}}]}, "unknown field 'opp' in query_store"),
    ],
)
def test_unknown_fields_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        check(_case(**changes))


def _event(**changes: Any) -> dict[str, Any]:
    event = {"step": 0, "topic": "out", "partition": None, "key": "61", "value": "62", "ts": 5, "headers": []}
    return event | changes


def test_a_missing_event_is_named_with_its_step_and_does_not_shift_the_rest() -> None:
    case = _case(expect={"events": [_event(), _event(step=1, key="63"), _event(step=2)]})

    found = compare(case, {"events": [_event(), _event(step=2)]})

    expected = [
        "events, step 1\n"
        "    expected  topic out, partition null, key 63 = 'c', value 62 = 'b', ts 5\n"
        "    got       nothing"
    ]

    assert expected == [str(difference) for difference in found]


def test_java_texts_in_dead_letter_headers_count_only_where_a_function_threw_them() -> None:
    message = "__streams.errors.message"
    topology = [{"id": "m", "op": "map_values", "on": "s", "fn": "throw:boom"}]
    java = _case(topology=topology, expect={"events": [_event(headers=[[message, b"java".hex()]])]})
    own = _case(topology=topology, expect={"events": [_event(headers=[[message, b"boom".hex()]])]})
    got = {"events": [_event(headers=[[message, b"python".hex()]])]}

    assert compare(java, got) == []
    assert len(compare(own, got)) == 1


def test_an_error_is_compared_by_phase_step_and_class_not_by_message() -> None:
    error = {"phase": "run", "step": 3, "class": "StreamsException", "message": "Java says"}
    case = _case(expect={"error": error})

    assert compare(case, {"error": error | {"message": "Python says"}}) == []
    assert len(compare(case, {"error": error | {"step": 4}})) == 1
    assert len(compare(case, {})) == 1


def test_every_difference_of_a_store_shows_both_rows() -> None:
    case = _case(expect={"stores": {"st": [{"key": "61", "value": "62", "ts": 5}]}})

    (found,) = compare(case, {"stores": {"st": [{"key": "61", "value": "62", "ts": 6}]}})

    expected = [
        "stores, 'st'",
        "    expected  key 61 = 'a', value 62 = 'b', ts 5",
        "    got       key 61 = 'a', value 62 = 'b', ts 6",
    ]

    assert expected == str(found).splitlines()


def test_a_malformed_case_file_fails_and_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(_case(nmae="c")))
    (tmp_path / "worse.json").write_text("{")

    code = main([str(tmp_path)])

    assert code == 1
    said = capsys.readouterr().out
    assert "unknown field 'nmae'" in said
    assert said.splitlines()[-1] == "0 passed, 2 failed"


def test_area_keeps_only_the_cases_of_that_area(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(_case(area="one", nmae="c")))

    code = main([str(tmp_path), "--area", "two"])

    assert (code, capsys.readouterr().out) == (0, "0 passed, 0 failed\n")


def test_recorded_random_cases_are_made_again_from_template_and_seed(tmp_path: Path) -> None:
    for path in generate(tmp_path, chosen(["count", "session", "fk_left"], ()), range(2)):
        recorded = json.loads((HERE / "cases" / path.relative_to(tmp_path)).read_text())
        del recorded["expect"]

        assert recorded == json.loads(path.read_text())


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_every_template_makes_well_formed_cases(name: str) -> None:
    for seed in range(5):
        rng = Random(seed)
        scenario = TEMPLATES[name].make(rng)
        check({"name": name, "topology": scenario.topology, "steps": steps(scenario, rng, 20)})
