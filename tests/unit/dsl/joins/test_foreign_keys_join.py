"""Joins by many-valued foreign keys as a user writes them."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import Grouped, KTable, Produced, Serdes, StreamsBuilder, StreamsConfig, TableJoined
from pykstreams.errors import ProcessingError
from pykstreams.serdes import CombinedKey, CombinedKeySerde
from pykstreams.testing import TopologyTestDriver

CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "statestore.cache.max.bytes": 0,
    }
)
COMBINED = CombinedKeySerde(Serdes.string(), Serdes.string())


def words(value: str) -> list[str | None]:
    return [word if word != "null" else None for word in value.split()]


def with_tags(post: str, tag: str | None) -> str:
    return f"{post}+{tag}"


def joined(builder: StreamsBuilder, kind: str = "join", **options: Any) -> KTable[CombinedKey[str, str], str]:
    posts: KTable[str, str] = builder.table("posts")
    tags: KTable[str, str] = builder.table("tags")
    join: Any = getattr(posts, kind)
    table: KTable[CombinedKey[str, str], str] = join(tags, with_tags, **{"foreign_keys_extractor": words, **options})
    return table


def run(builder: StreamsBuilder, *records: tuple[str, str, str | None], key_serde: Any = COMBINED) -> list[Any]:
    with TopologyTestDriver(builder.build(), CONFIG, partitions=4) as driver:
        for time, (topic, key, value) in enumerate(records):
            driver.create_input_topic(topic, Serdes.string(), Serdes.string()).pipe_input(key, value, timestamp=time)
        out = driver.create_output_topic("out", key_serde, Serdes.string()).read_records()
        return [(record.key, record.value) for record in out]


def results(kind: str, *records: tuple[str, str, str | None], **options: Any) -> list[Any]:
    builder = StreamsBuilder()
    joined(builder, kind, **options).to_stream().to("out", Produced(key_serde=COMBINED))
    return run(builder, *records)


def test_row_is_joined_with_each_row_that_it_refers_to() -> None:
    found = results("join", ("tags", "x", "X"), ("tags", "y", "Y"), ("posts", "p", "x y x z"))

    assert sorted(found) == [(("x", "p"), "x y x z+X"), (("y", "p"), "x y x z+Y")]


def test_change_of_keys_deletes_those_that_are_gone_and_adds_the_new_ones() -> None:
    found = results(
        "join",
        *(("tags", tag, tag.upper()) for tag in "xyz"),
        ("posts", "p", "x y"),
        ("posts", "p", "y z"),
    )

    assert sorted(found[2:], key=str) == [(("x", "p"), None), (("y", "p"), "y z+Y"), (("z", "p"), "y z+Z")]


def test_change_of_the_other_side_reaches_all_that_refer_to_it() -> None:
    found = results("join", ("posts", "p", "x y"), ("posts", "q", "x"), ("tags", "x", "X"), ("tags", "x", None))

    assert found == [
        (("x", "p"), "x y+X"),
        (("x", "q"), "x+X"),
        (("x", "p"), None),
        (("x", "q"), None),
    ]


def test_left_join_joins_with_none_where_the_other_table_has_no_row() -> None:
    found = results("left_join", ("posts", "p", "x"), ("tags", "x", "X"), ("tags", "x", None), ("posts", "p", None))

    assert found == [(("x", "p"), "x+None"), (("x", "p"), "x+X"), (("x", "p"), "x+None"), (("x", "p"), None)]


def test_row_without_keys_has_no_rows_in_the_result() -> None:
    assert results("left_join", ("posts", "p", "")) == []


def test_null_key_among_others_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    assert results("left_join", ("posts", "p", "null x")) == [(("x", "p"), "null x+None")]
    assert "a row refers to null" in caplog.text


def test_totals_are_right_under_retraction() -> None:
    builder = StreamsBuilder()
    by_tag = joined(builder, "left_join").group_by(
        lambda key, value: (key.prefix, value), Grouped(key_serde=Serdes.string())
    )
    by_tag.count().map_values(str).to_stream().to("out")

    found = run(
        builder,
        ("posts", "p", "x y"),
        ("tags", "x", "X"),
        ("posts", "q", "x"),
        ("posts", "p", "y"),
        ("tags", "y", "Y"),
        ("tags", "x", None),
        key_serde=Serdes.string(),
    )

    assert dict(found) == {"x": "1", "y": "1"}


def test_name_is_that_of_stores_and_topics() -> None:
    builder = StreamsBuilder()
    joined(builder, name="tagged")
    plan = builder.build().plan(CONFIG)

    assert "app-tagged-repartition" in plan.whole.repartition_topics
    assert "tagged-shipped-store" in plan.whole.stores


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda value: value, r"returned 'x y', one foreign key; expected several: give a list of them, or use"),
        (lambda value: 5, r"returned 5; expected an iterable of foreign keys"),
        (lambda value: None, r"returned None; expected an iterable of foreign keys"),
    ],
)
def test_extractor_that_gives_no_keys_to_go_through_is_told(given: Any, message: str) -> None:
    with pytest.raises(ProcessingError, match=message):
        results("join", ("posts", "p", "x y"), foreign_keys_extractor=given)


@pytest.mark.parametrize("kind", ["join", "left_join"])
@pytest.mark.parametrize(
    "options",
    [
        {"foreign_key_extractor": str},
        {"foreign_key_extractor": str, "extractor_with_key": True},
        {"table_joined": TableJoined()},
    ],
)
def test_options_of_joins_by_one_key_are_refused(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="foreign_keys_extractor was given beside foreign_key_extractor"):
        joined(StreamsBuilder(), kind, **options)
