"""The assignor that the settings of an application name."""

from __future__ import annotations

import logging
from typing import Final, cast

from pykstreams.core.config import GroupProtocol, StreamsConfig
from pykstreams.runtime.membership.assignors.task_assignor import TaskAssignor

log = logging.getLogger(__name__)

_SETTING: Final = "task.assignor.class"


def user_assignor(config: StreamsConfig) -> TaskAssignor | None:
    """Returns the assignor of ``task.assignor.class``, made and configured at first use.

    ``None``: it is not set, or has no effect since the brokers share out the tasks, which is warned of.
    ``ConfigError``: it cannot be made.
    """
    if config[_SETTING] is not None and config.group_protocol is GroupProtocol.STREAMS:
        log.warning("%s has no effect where group.protocol is 'streams': the brokers share out the tasks", _SETTING)
        return None
    return cast("TaskAssignor | None", config.instance(_SETTING))
