"""The ways by which results and late records leave a windowed aggregation, whatever its windows are."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward
from pykstreams.core.windows import EmitStrategy
from pykstreams.processors.aggregates.late_records import late_outlet, result_outlet
from pykstreams.processors.emit_on_close import Closed, EmitClosed, LookForClosed, ReadClosed, emitter_of_closed
from pykstreams.processors.idle_time import IdleTime, idle_time
from pykstreams.processors.tables.table_forwarding import Emit, forwarder
from pykstreams.state.interfaces.operator_stores import FlushesToListener


class WindowedAggregate(Protocol):
    """The settings of the operator that matter here."""

    @property
    def store(self) -> str: ...
    @property
    def send_old_values(self) -> bool: ...
    @property
    def emit_strategy(self) -> EmitStrategy: ...
    @property
    def late_child(self) -> str | None: ...
    @property
    def idle_ms(self) -> int | None: ...


class WindowOutlets(NamedTuple):
    """The ways out of one operator; which of the first two is there depends on its emit strategy."""

    emit: Emit | None
    """Takes each update of a window."""

    emit_closed: EmitClosed | None
    """To be called behind each record; forwards what is closed."""

    late: Forward | None
    """Takes late records; ``None`` where nobody wants them."""

    look: LookForClosed | None
    """Forwards what is closed without a record; there if ``emit_closed`` is."""


def window_outlets(
    operator: WindowedAggregate,
    store: FlushesToListener,
    context: OperatorContext,
    closed: Closed | None,
    read: ReadClosed,
) -> WindowOutlets:
    """Makes the outlets while the operator is built.

    :param closed: which windows to emit when they are closed; ``None`` for windows that cannot be emitted so, which is
        for the DSL to check.
    :param store: the open store of the operator.
    :param read: reads the closed windows from it.
    """
    forward = result_outlet(context, operator.late_child)
    late = late_outlet(context, operator.late_child)
    if closed is not None and operator.emit_strategy is EmitStrategy.ON_WINDOW_CLOSE:
        closing = emitter_of_closed(context, operator.store, forward, closed, read)
        return WindowOutlets(None, closing.behind_record, late, closing.at_once)
    emit = forwarder(store, context, operator.send_old_values, forward)
    return WindowOutlets(emit, None, late, None)


def window_idle_time(
    operator: WindowedAggregate, context: OperatorContext, look: LookForClosed | None, grace_ms: int, open_ms: int
) -> IdleTime | None:
    """The time of an aggregation whose windows close while there is no input; ``None`` where they do not.

    :param grace_ms: by how much stream time is ahead of the close time.
    :param open_ms: when this has passed since a record, all windows that hold it are closed.
    """

    def emit(time: int) -> None:
        if look is not None:
            look(time - grace_ms, time)

    return idle_time(context, operator.idle_ms, lambda time: time + open_ms, emit)
