"""A damaged store is set aside, so that it is restored from its changelog when its task is opened again."""

from __future__ import annotations

import logging

from pykstreams.core.errors import DamagedStoreError, ProcessorStateError
from pykstreams.core.ids import TaskId
from pykstreams.state.bulk.take_over import forget_mark
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.engines.disk_form import OtherFormError

log = logging.getLogger(__name__)


def set_store_aside(directory: StateDirectory, task_id: TaskId, error: DamagedStoreError) -> None:
    """Moves a damaged store out of the folder of a task, whose lock is held and whose stores are closed.

    State that is based on a bootstrap is made from it again, since it may have rows that no changelog has.
    """
    try:
        folder = directory.set_aside(task_id, error.store)
        forget_mark(directory.task_dir(task_id))
    except ProcessorStateError as failure:
        log.error("task %s: store %r is damaged, and stays as it is: %s", task_id, error.store, failure)
        return
    if isinstance(error, OtherFormError):
        log.warning("%s. It was set aside in %r, and is restored", error.reason, str(folder))
        return
    log.error(
        "task %s: store %r is damaged; %s, and it is restored from its changelog. Look at the disk. The cause: %s",
        task_id,
        error.store,
        "its folder is gone" if folder is None else f"it was set aside in {str(folder)!r}",
        error.__cause__ or error,
    )
