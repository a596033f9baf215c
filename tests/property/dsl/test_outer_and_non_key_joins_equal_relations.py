"""After random changes of both tables, outer foreign-key joins and non-key joins hold the rows that a relation would,
and an aggregation of their changes the totals of these rows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import BuiltInDslStoreSuppliers, KTable, Produced, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.serdes import CombinedKey, CombinedKeySerde, OptionalSerde
from pykstreams.testing import TopologyTestDriver

CONFIG = {
    "application.id": "app",
    "default.key.serde": Serdes.string(),
    "default.value.serde": Serdes.string(),
    "dsl.store.suppliers.class": BuiltInDslStoreSuppliers.IN_MEMORY,
}
KEYS = CombinedKeySerde(OptionalSerde(Serdes.string()), OptionalSerde(Serdes.string()))

REFERENCES = st.sampled_from(["x", "y", "xx", "", "-"])
CHANGES = st.one_of(
    st.tuples(st.just("left"), st.sampled_from("abc"), st.none() | st.tuples(REFERENCES, st.sampled_from("12"))),
    st.tuples(st.just("right"), st.sampled_from(["x", "y", "xx", ""]), st.none() | st.sampled_from("XY")),
)
"""(table, key, value); an empty key is a key like others, and ``-`` refers to nothing."""


def mapped(value: str) -> str | None:
    reference = value[:-1]
    return None if reference == "-" else reference


def both(left: str | None, right: str | None) -> str:
    return f"{left}+{right}"


def relation(left: dict[str, str], right: dict[str, str]) -> dict[CombinedKey[str | None, str | None], str]:
    """The full outer join."""
    rows: dict[CombinedKey[str | None, str | None], str] = {}
    for key, value in left.items():
        reference = mapped(value)
        rows[CombinedKey(reference, key)] = both(value, None if reference is None else right.get(reference))
    alone = set(right) - {mapped(value) for value in left.values()}
    return rows | {CombinedKey(key, None): both(None, right[key]) for key in alone}


def foreign_key_join(builder: StreamsBuilder) -> Any:
    left: KTable[str, str] = builder.table("left")
    return left.outer_join(builder.table("right"), both, foreign_key_extractor=mapped)


def non_key_join(builder: StreamsBuilder) -> Any:
    left: KTable[str, str] = builder.table("left")
    return left.outer_join(
        builder.table("right"),
        both,
        mapper=lambda key, value: mapped(value),
        selector=lambda key, reference: f"{key}/{reference}",
    )


def selected(rows: dict[CombinedKey[str | None, str | None], str]) -> dict[str, str]:
    return {f"{key.suffix}/{None if value.endswith('+None') else key.prefix}": value for key, value in rows.items()}


@pytest.mark.parametrize("cache", [0, 10_000_000])
@pytest.mark.parametrize("kind", ["foreign key", "non-key"])
@settings(max_examples=40, deadline=None)
@given(changes=st.lists(CHANGES, max_size=25))
def test_join_is_the_relation_after_each_change_and_its_totals_are_right(
    kind: str, cache: int, changes: list[tuple[str, str, Any]]
) -> None:
    builder = StreamsBuilder()
    joined = foreign_key_join(builder) if kind == "foreign key" else non_key_join(builder)
    keys: Any = KEYS if kind == "foreign key" else Serdes.string()
    joined.to_stream().to("out", Produced(key_serde=keys, value_serde=Serdes.string()))
    joined.group_by(lambda key, value: (value, value)).count().to_stream().to(
        "counts", Produced(key_serde=Serdes.string(), value_serde=Serdes.long())
    )
    tables: dict[str, dict[str, str]] = {"left": {}, "right": {}}
    made: dict[Any, Any] = {}
    counts: dict[str, int] = {}
    config = StreamsConfig({**CONFIG, "statestore.cache.max.bytes": cache})
    with TopologyTestDriver(builder.build(), config, partitions=4) as driver:
        inputs = {name: driver.create_input_topic(name) for name in tables}
        out = driver.create_output_topic("out", keys, Serdes.string())
        totals = driver.create_output_topic("counts", Serdes.string(), Serdes.long())
        for time, (name, key, drawn) in enumerate(changes):
            value = "".join(drawn) if drawn is not None else None
            inputs[name].pipe_input(key, value, time)
            if value is None:
                tables[name].pop(key, None)
            else:
                tables[name][key] = value
            made.update(out.read_key_values_to_dict())
            counts.update(totals.read_key_values_to_dict())
            rows: dict[Any, str] = relation(tables["left"], tables["right"])
            expected = rows if kind == "foreign key" else selected(rows)

            assert {key: value for key, value in made.items() if value is not None} == expected
            assert {value: number for value, number in counts.items() if number} == Counter(expected.values())
