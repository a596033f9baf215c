"""The topology that ran last is kept beside the state, and a change that needs something is warned of at the start."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.kept_topology import KeptTopology
from pykstreams.topology.changes.shape import StoreShape, TopicShape, TopologyShape


def shape(value_serde: str) -> TopologyShape:
    return TopologyShape("shop", (StoreShape("counts", 0, "rocksdb", "StringSerde", value_serde, "counts-changelog"),))


@pytest.fixture
def kept(tmp_path: Path) -> KeptTopology:
    return KeptTopology(StreamsConfig({"application.id": "shop", "state.dir": str(tmp_path)}))


def test_changed_topology_is_warned_of_once(kept: KeptTopology, caplog: pytest.LogCaptureFixture) -> None:
    kept.compared(shape("LongSerde"))
    assert caplog.messages == []

    with caplog.at_level(logging.WARNING):
        kept.compared(shape("JsonSerde"))
        kept.compared(shape("JsonSerde"))

    (message,) = caplog.messages
    assert message.startswith(
        "the topology has changed (needs reset): broken: counts: the value serde of the store was"
    )


@pytest.mark.parametrize(("instance", "warned"), [("one", True), (None, False)])
def test_static_members_are_warned_of_tasks_that_nobody_gets_when_they_come_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, instance: str | None, warned: bool
) -> None:
    """The coordinator goes on with the assignment that there is, which does not have the new tasks."""
    settings = {"application.id": "shop", "bootstrap.servers": "broker:9092", "state.dir": str(tmp_path)}
    static = {} if instance is None else {"consumer.group.instance.id": instance}
    kept = KeptTopology(StreamsConfig({**settings, **static}))
    orders, returns = (TopicShape(name, 0, "StringSerde", "StringSerde") for name in ("orders", "returns"))
    for inputs in ((orders,), (orders,), (orders, returns), (orders,)):
        kept.compared(TopologyShape("shop", inputs=inputs))

    found = [message for message in caplog.messages if "nobody gets new ones" in message]
    assert [message.partition(" were not read before")[0] for message in found] == ["topics returns"] * warned


def test_forgotten_topology_is_not_compared(kept: KeptTopology, caplog: pytest.LogCaptureFixture) -> None:
    kept.compared(shape("LongSerde"))
    kept.forget()
    kept.compared(shape("JsonSerde"))

    assert caplog.messages == []
    assert kept.read() == shape("JsonSerde")


@pytest.mark.parametrize("step", ["write_text", "replace"])
def test_file_that_cannot_be_written_leaves_nothing_behind(
    kept: KeptTopology, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(path: Path, *_: object, **__: object) -> None:
        path.write_bytes(b"{")  # as much as there was room for
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, step, full)
    kept.compared(shape("LongSerde"))

    assert "No space left on device" in caplog.text
    assert [*kept.path.parent.iterdir()] == []


def test_damaged_file_is_told_and_written_anew(kept: KeptTopology, caplog: pytest.LogCaptureFixture) -> None:
    kept.path.parent.mkdir(parents=True)
    kept.path.write_text("{", encoding="utf-8")
    kept.compared(shape("LongSerde"))

    assert "cannot be read and is not compared" in caplog.text
    assert kept.read() == shape("LongSerde")
