"""Runs one case through pykstreams; gives what it does in the form of ``expect`` (FORMAT.md, section 10)."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.conformance import fields, functions, queries
from tests.conformance.api import operation, public
from tests.conformance.build import TopologyFactory
from tests.conformance.errors import FormatError, NotBuiltError
from tests.conformance.serdes import serde
from tests.conformance.stores import dsl_store
from tests.conformance.values import Json, encode, topic_bytes

_TESTING = "pykstreams.testing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case did: the content of ``expect``, and the exception behind its ``error`` if there is one."""

    result: dict[str, Json]
    raised: Exception | None = None


def run(case: Json) -> Outcome:
    """Runs a case; raises ``FormatError`` or, when pykstreams lacks what it needs, ``NotBuiltError``."""
    fields.check(case)
    with tempfile.TemporaryDirectory(prefix="conformance-") as state_dir:
        return _Run(case, configuration(case, state_dir)).outcome()


def configuration(case: Json, state_dir: str) -> dict[str, Any]:
    """Gives the settings of a case (section 4) as pykstreams takes them."""
    settings: dict[str, Json] = {
        "application.id": "app",
        "bootstrap.servers": "dummy:1",
        "default.key.serde": "string",
        "default.value.serde": "string",
        **case.get("config", {}),
        "state.dir": state_dir,
    }
    return {key: _setting(key, value) for key, value in settings.items() if value is not None}


def _setting(key: str, value: Json) -> Any:
    match key:
        case "default.key.serde" | "default.value.serde":
            return serde(value)
        case "default.timestamp.extractor":
            return functions.timestamp_extractor(value)
        case "deserialization.exception.handler":
            return public(_handler(key, value, "ExceptionHandler"), "pykstreams.errors")
        case "processing.exception.handler":
            return public(_handler(key, value, "ProcessingExceptionHandler"), "pykstreams.errors")
        case "dsl.store.suppliers.class":
            return dsl_store(value)
    return value


def _handler(key: str, value: Json, suffix: str) -> str:
    names = {"log_and_fail": "LogAndFail", "log_and_continue": "LogAndContinue"}
    if value not in names:
        raise FormatError(f"unknown {key} {value!r}")
    return names[value] + suffix


@dataclass(slots=True)
class _Run:
    case: Json
    config: dict[str, Any]
    step: int = -1
    phase: str = "build"
    driver: Any = None
    events: list[Json] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    answers: list[Json] = field(default_factory=list)
    result: dict[str, Json] = field(default_factory=dict)

    def outcome(self) -> Outcome:
        try:
            self._run()
        except (FormatError, NotBuiltError):
            raise
        except Exception as error:
            return self._failed(error)
        finally:
            self._close()
        return Outcome(self.result)

    def _run(self) -> None:
        factory = TopologyFactory(self.case, self.config, self._call)
        topology = factory.finish()
        description = topology.describe()
        self.result["describe"] = str(description)
        if factory.split_keys:
            self.result["split_keys"] = factory.split_keys
        start = self.case.get("wall_clock_start_ms", 0)
        driver = public("TopologyTestDriver", _TESTING)
        self.driver = driver(topology, self.config, initial_wall_clock_time=start)
        self.result["internal_topics"] = {
            topic.name: {"kind": topic.kind, "partitions": topic.partitions, "config": dict(topic.config)}
            for topic in operation(description, "internal_topics")
        }
        self.phase = "run"
        self._capture()
        for number, step in enumerate(self.case["steps"]):
            self.step = number
            self._step(step)
            self._capture()
        self.result["events"] = self.events
        self.result["stores"] = dict(self._dump())

    def _failed(self, error: Exception) -> Outcome:
        if self.phase == "run":
            self._capture()
        if "describe" in self.result:
            self.result["events"] = self.events
        where = {"step": self.step} if self.phase == "run" else {}
        self.result["error"] = {
            "phase": self.phase,
            **where,
            "class": self._class(error),
            "message": str(error),
        }
        return Outcome(self.result, error)

    def _class(self, error: Exception) -> str:
        return error_class(error, self.case.get("expect", {}).get("error", {}).get("class"))

    def _close(self) -> None:
        if self.driver is not None:
            with contextlib.suppress(Exception):  # a task that failed may also fail to close; the case has its error
                self.driver.close()

    def _call(self, identifier: str, key: Any, value: Any) -> None:
        self.calls.append({"step": self.step, "call": identifier, "key": encode(key), "value": encode(value)})

    def _step(self, step: Json) -> None:
        if "pipe" in step:
            record = step["pipe"]
            raw = serde("bytes")
            topic = self.driver.create_input_topic(record["topic"], raw, raw)
            given = tuple(
                (name, None if value is None else bytes.fromhex(value)) for name, value in record.get("headers", ())
            )
            topic.pipe_input(topic_bytes(record["key"]), topic_bytes(record["value"]), record["ts"], given)
        elif "advance_wall_clock_ms" in step:
            self.driver.advance_wall_clock_time(step["advance_wall_clock_ms"])
        else:
            spec = step["query_store"]
            store = self.driver.get_state_store(spec["store"])
            if store is None:
                raise FormatError(f"no store {spec['store']!r} in {sorted(self.driver.get_all_state_stores())}")
            answer = queries.query(store, spec)
            self.answers.append({"step": self.step, "query": spec["store"], "op": spec["op"], "result": answer})

    def _capture(self) -> None:
        """Moves what happened since the last capture to the events: records by topic, calls, then queries."""
        produced = operation(self.driver, "take_produced")()
        for record in sorted(produced, key=lambda record: record.topic):
            self.events.append(
                {
                    "step": self.step,
                    "topic": record.topic,
                    "partition": record.partition,
                    "key": None if record.key is None else record.key.hex(),
                    "value": None if record.value is None else record.value.hex(),
                    "ts": record.timestamp,
                    "headers": queries.headers(record.headers),
                }
            )
        self.events += self.calls + self.answers
        self.calls, self.answers = [], []

    def _dump(self) -> Iterator[tuple[str, Json]]:
        stores = self.driver.get_all_state_stores()
        expected = self.case.get("expect", {}).get("stores", {})
        for name in sorted(stores):
            if expected.get(name) == "opaque":
                yield name, "opaque"
            else:
                yield name, queries.dump(stores[name], operation(self.driver, "raw_store")(name))


def error_class(error: Exception, wanted: str | None = None) -> str:
    """Gives the simple name of the Java exception that an error stands for (section 10).

    ``wanted`` is the name that is expected; one outside that list is matched by the error of that name.
    """
    if wanted is not None and wanted.removesuffix("Exception") + "Error" in _names(type(error)):
        return wanted
    if isinstance(error, public("TopologyError", "pykstreams.errors")):
        return "TopologyException"
    if isinstance(error, public("ProcessorStateError", "pykstreams.errors")):
        return "ProcessorStateException"
    if isinstance(error, public("StreamsError", "pykstreams.errors")):
        return "StreamsException"
    if isinstance(error, ValueError):
        return "IllegalArgumentException"
    if isinstance(error, TypeError):
        return "NullPointerException"
    return type(error).__name__


def _names(kind: type) -> set[str]:
    return {base.__name__ for base in kind.__mro__} - {"StreamsError"}
