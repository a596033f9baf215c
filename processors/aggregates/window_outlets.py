"""The ways by which results and late records leave a windowed aggregation, whatever its windows are."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward
from pykstreams.core.windows import EmitStrategy
from pykstreams.processors.aggregates.late_records import late_outlet, result_outlet
from pykstreams.processors.emit_on_close import Closed, EmitClosed, ReadClosed, emitter_of_closed
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


class WindowOutlets(NamedTuple):
    """The ways out of one operator; which of the first two is there depends on its emit strategy."""

    emit: Emit | None
    """Takes each update of a window."""

    emit_closed: EmitClosed | None
    """To be called behind each record; forwards what is closed."""

    late: Forward | None
    """Takes late records; ``None`` where nobody wants them."""


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
        return WindowOutlets(None, emitter_of_closed(context, operator.store, forward, closed, read), late)
    emit = forwarder(store, context, operator.send_old_values, forward)
    return WindowOutlets(emit, None, late)
