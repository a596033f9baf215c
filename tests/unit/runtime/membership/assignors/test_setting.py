"""The assignor that ``task.assignor.class`` names."""

from __future__ import annotations

import pytest

from pykstreams import StreamsConfig
from pykstreams.assignment import StickyTaskAssignor
from pykstreams.core.errors import ConfigError
from pykstreams.runtime.membership.assignors.setting import user_assignor


class Configured(StickyTaskAssignor):
    def configure(self, configs: StreamsConfig) -> None:
        self.region = configs["app.region"]


def test_it_is_made_once_and_configured() -> None:
    config = StreamsConfig({"task.assignor.class": Configured, "app.region": "north"})
    assignor = user_assignor(config)
    assert isinstance(assignor, Configured)
    assert assignor.region == "north"
    assert user_assignor(config) is assignor


def test_it_may_be_named_by_a_text() -> None:
    config = StreamsConfig({"task.assignor.class": "pykstreams.assignment:StickyTaskAssignor"})
    assert isinstance(user_assignor(config), StickyTaskAssignor)


def test_there_is_none_unless_it_is_set() -> None:
    assert user_assignor(StreamsConfig()) is None


def test_what_is_no_assignor_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'task.assignor.class'.*expected a TaskAssignor"):
        user_assignor(StreamsConfig({"task.assignor.class": "pykstreams.assignment:AssignmentConfigs"}))


def test_it_has_no_effect_where_brokers_share_out_the_tasks(caplog: pytest.LogCaptureFixture) -> None:
    config = StreamsConfig({"task.assignor.class": Configured, "group.protocol": "streams"})
    assert user_assignor(config) is None
    assert "task.assignor.class has no effect where group.protocol is 'streams'" in caplog.text
