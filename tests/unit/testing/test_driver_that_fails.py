"""A driver that cannot be made."""

from __future__ import annotations

import pytest

from pykstreams import StreamsBuilder
from pykstreams.runtime.tasks.task import Task
from pykstreams.serdes import Serdes
from pykstreams.testing import TopologyTestDriver


def test_what_closing_raises_does_not_hide_why_a_driver_was_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StreamsBuilder()
    builder.stream("a").to("b")
    config = dict.fromkeys(("default.key.serde", "default.value.serde"), Serdes.string())
    topology = builder.build()

    def fail(text: str) -> None:
        raise OSError(text)

    monkeypatch.setattr(Task, "start", lambda *_: fail("why"))
    monkeypatch.setattr(Task, "close", lambda *_: fail("closing"))

    with pytest.raises(OSError, match="why"):
        TopologyTestDriver(topology, config)
