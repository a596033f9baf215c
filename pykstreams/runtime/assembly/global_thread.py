"""Puts together what keeps the global stores."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.errors import StreamsError
from pykstreams.runtime.assembly.application_parts import ApplicationParts, with_progress
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreConsumer
from pykstreams.runtime.global_stores.global_state import GlobalState
from pykstreams.runtime.global_stores.global_thread import GlobalThread
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.directory.state_directory import StateDirectory


def build_global_thread(
    app: ApplicationParts,
    layout: TopicLayout,
    *,
    directory: StateDirectory,
    listener: StateRestoreListener | None,
    on_failure: Callable[[StreamsError], None],
) -> GlobalThread:
    """Makes what keeps the global stores, which all workers share; nothing runs yet."""
    config, clock = app.config, app.clock
    return GlobalThread(
        f"{app.client_id}-GlobalStreamThread",
        state=GlobalState(
            app.plan.global_stores,
            config=config,
            clock=clock,
            metrics=app.metrics,
            directory=directory.global_dir,
            cache=app.caches.new(),
        ),
        partitions=layout.partitions,
        reader=lambda: RestoreConsumer.open_global(app.supplier, config, app.client_id),
        offsets=app.admin,
        listener=with_progress(clock, listener),
        config=config,
        clock=clock,
        on_failure=on_failure,
    )
