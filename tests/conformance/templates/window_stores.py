"""Templates for window stores that processors write: every kind of store, all reads, times that lie segments apart.

Left out is what Kafka Streams gets wrong (docs/reference/differences.md): deleted rows in backward reads of a store
with a cache, ranges that end in a key with zero bytes, such keys in memory below a cache, reads from a segment before
time began.
"""

from __future__ import annotations

from random import Random

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates.scenario import Input, Scenario, Template, word
from tests.conformance.templates.shapes import sink, source
from tests.conformance.values import Json

_PLAIN_KEYS = ["a", "b", "ab", ""]
_KEYS = [*_PLAIN_KEYS, "a\0", "b\0\0\0\0"]
_BOUNDS = ["", "a", "ab", "b", "c"]
_KINDS = ["persistent_window", "persistent_timestamped_window", "in_memory_window", "in_memory_timestamped_window"]
_RETENTIONS = [40, 60_000, 119_999, 130_000, 300_000]


def _queries(rng: Random, last: int, back: str) -> list[Step]:
    """Reads of every kind, between times of which most lie where records are."""

    def times() -> dict[str, Json]:
        if rng.random() < 0.3:
            return {}
        low, high = sorted((rng.randint(0, last), rng.randint(0, last)))
        return {"time_from": low, "time_to": high}

    def bounds() -> dict[str, Json]:
        low, high = sorted(rng.sample(_BOUNDS, 2))
        return {"from_": low, "to": high}

    return [
        query("ws", "fetch", key=rng.choice(_KEYS), time=rng.randint(0, last)),
        query("ws", f"{back}fetch_range", key=rng.choice(_KEYS), **times()),
        query("ws", f"{back}fetch_keys", **bounds(), **times()),
        query("ws", f"{back}fetch_all", **times()),
        query("ws", f"{back}all"),
    ]


def _scenario(rng: Random) -> Scenario:
    retention = rng.choice(_RETENTIONS)
    store: dict[str, Json] = {
        "name": "ws",
        "kind": rng.choice(_KINDS),
        "retention_ms": retention,
        "window_size_ms": rng.choice([1, 5, 40]),
        "key": "string",
        "value": "string",
    }
    if rng.random() < 0.3:
        store["retain_duplicates"] = True
    if rng.random() < 0.5:
        store["caching"] = True
    if rng.random() < 0.3:
        store["logging"] = rng.choice([False, {"segment.ms": "777"}, {"cleanup.policy": "compact"}])
    time_step = rng.choice([2, retention // 20 + 1, retention // 5 + 1])
    keys = _PLAIN_KEYS if "caching" in store and "in_memory" in store["kind"] else _KEYS
    back = rng.random() < 0.4
    read: dict[str, Json] = {
        "name": "window_fetch",
        "store": "ws",
        "before_ms": rng.choice([0, 3, retention // 3]),
        "after_ms": rng.choice([0, 3, retention]),
        "backward": back,
    }
    topology = [
        step("st", "add_state_store", store=store),
        source(),
        step("x", "process", "s", processor={"name": "window_put", "store": "ws"}, stores=["ws"]),
        step("y", "process", "x", processor=read, stores=["ws"]),
        sink("y"),
    ]
    return Scenario(
        topology,
        {"in": Input(keys[: rng.randint(1, len(keys))], word)},
        time_step=time_step,
        late=rng.choice([0, 0.3, 0.6]),
        back=rng.choice([5, retention // 2 + 1, retention + 70_000]),
        nulls=0 if back and "caching" in store else 0.2,
        null_keys=0,
        queries=_queries(rng, 30 * time_step, "backward_" if back else ""),
        cache=rng.choice([0, 0, 200, 10485760]),
    )


TEMPLATES: dict[str, Template] = {"window_stores": Template("processor", 2, _scenario)}
