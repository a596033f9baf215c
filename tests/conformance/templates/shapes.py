"""Pieces that many templates share: keys, inputs, sources and sinks."""

from __future__ import annotations

from typing import Any

from tests.conformance.caselib import Step, step
from tests.conformance.templates.scenario import Input, word
from tests.conformance.values import Json

KEYS = ["a", "b", "c"]
WORDS = {"in": Input(KEYS, word)}
WORDS_AB = {"a": Input(KEYS, word), "b": Input(KEYS, word)}
WORDS_LEFT_RIGHT = {"l": Input(KEYS, word), "r": Input(KEYS, word)}


def source(topic: str = "in", identifier: str = "s", **parameters: Any) -> Step:
    """A stream from a topic."""
    return step(identifier, "stream", topic=topic, **parameters)


def table(topic: str, identifier: str, **parameters: Any) -> Step:
    """A table from a topic."""
    return step(identifier, "table", topic=topic, **parameters)


def sink(on: str, key: str = "string", value: str = "string", topic: str = "out", identifier: str = "to") -> Step:
    """A stream written to a topic."""
    return step(identifier, "to", on, topic=topic, produced={"key": key, "value": value})


def versioned(store: str, retention_ms: int = 40) -> Json:
    """A ``materialized`` with a versioned store."""
    return {"store": store, "kind": "versioned", "history_retention_ms": retention_ms}
