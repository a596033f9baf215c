"""The shape of the topology that ran last, kept beside the state of its application.

It lies in ``<state.dir>/pykstreams/<application.id>.topology.json``, apart from the folder that workers lock.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.state.directory.state_directory import OWN_FOLDER
from pykstreams.topology.changes.change import Verdict
from pykstreams.topology.changes.comparison import compare
from pykstreams.topology.changes.shape import TopologyShape, shape_from

log = logging.getLogger(__name__)


class KeptTopology:
    """The file of one application."""

    def __init__(self, config: StreamsConfig) -> None:
        self.path = Path(config.state_dir) / OWN_FOLDER / f"{config.application_id}.topology.json"
        self._config = config

    def read(self) -> TopologyShape | None:
        """Returns the shape, ``None`` where there is none that can be read."""
        try:
            return shape_from(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TopologyError) as error:
            log.warning(
                "the topology that ran last, in %r, cannot be read and is not compared: %s", str(self.path), error
            )
            return None

    def keep(self, shape: TopologyShape) -> None:
        """Writes the shape; a disk that does not let it is told, and stops nothing."""
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps(shape.as_dict()), encoding="utf-8")
            new.replace(self.path)
        except OSError as error:
            log.warning(
                "the topology was not kept in %r, so the next change is not compared: %s", str(self.path), error
            )
            with suppress(OSError):  # it may be the folder that could not be made
                new.unlink()

    def forget(self) -> None:
        """Deletes the file; without one it does nothing."""
        self.path.unlink(missing_ok=True)

    def compared(self, shape: TopologyShape) -> None:
        """Warns of what the change from the topology that ran last needs, and keeps the new one."""
        old = self.read()
        if old == shape:
            return
        for change in compare(old, shape) if old is not None else ():
            if change.verdict is not Verdict.SAFE:
                log.warning("the topology has changed (%s): %s", change.verdict, change)
        if old is not None and (new := _read_topics(shape) - _read_topics(old)) and self._is_static:
            log.warning(
                "topics %s were not read before, and static members (group.instance.id) that come back within "
                "session.timeout.ms get the tasks that they had: nobody gets new ones before the group shares out "
                "tasks anew. When all workers run this version, stop one of them for longer than session.timeout.ms; "
                "'pykstreams status' shows tasks that nobody has",
                ", ".join(sorted(new)),
            )
        self.keep(shape)

    @property
    def _is_static(self) -> bool:
        settings = self._config.get_main_consumer_configs(self._config.application_id, "", 1)
        return bool(settings.get("group.instance.id"))


def _read_topics(shape: TopologyShape) -> set[str]:
    return {topic.name for topic in (*shape.inputs, *shape.repartition_topics)}
