"""The code of ``docs/guides/types.md`` runs, and does what the page says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pykstreams import StreamsBuilder
from pykstreams.dsl.annotations.inference import value_serde
from pykstreams.serdes.by_type import TYPES, TypeSerdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

PAGE = Page("docs/guides/types.md")


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the code of the page defines; what it registers is forgotten afterwards."""
    monkeypatch.setattr(TYPES, "__dict__", TypeSerdes().__dict__)
    printed: list[str] = []
    found = PAGE.run(printed=printed)
    found["printed"] = "".join(printed)
    return found


def test_what_the_page_prints_is_what_it_says(names: dict[str, Any]) -> None:
    record, member, refused, told_apart, error, contradiction = names["printed"].splitlines()

    assert f"It prints `{record}`." in PAGE.text
    assert f"It prints `{member}`." in PAGE.text
    assert f"The first is `{refused}`, the second `{told_apart}`." in PAGE.text
    (said,) = re.findall(r"`(KSTREAM-SINK-0000000002 .*; )\.\.\.`", PAGE.text)
    assert re.sub(r"[(]types.md:[0-9]+[)]", "(...)", error).startswith(said)
    assert f"`{re.sub(r'[(]types.md:[0-9]+[)]', '(...)', contradiction)}`" in PAGE.text


def test_annotations_of_the_page_have_their_serdes(names: dict[str, Any]) -> None:
    assert repr(value_serde(names["in_cents"])) == "AvroSerde(Revenue)"
    assert repr(value_serde(names["length"])) == "IntegerSerde()"


def test_a_registered_type_stands_for_its_serde(names: dict[str, Any]) -> None:
    builder = StreamsBuilder()
    builder.stream("orders", str, names["Order"]).map_values(names["shape"]).to("shapes")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("orders", str, names["Order"]).pipe_input("1", names["Order"]("Ann", 1))
        assert driver.create_output_topic("shapes", str, bytes).read_value() == b"shape"
