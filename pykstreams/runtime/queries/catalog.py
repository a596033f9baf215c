"""The stores of an application as a reader sees them: of what kind each is, and the serdes of its keys and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.defaults import or_default
from pykstreams.serdes.key_texts import key_reader
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.store_kinds import StoreKind, kind_of
from pykstreams.topology.plan import TopologyPlan


@dataclass(frozen=True)
class StoreDescription:
    """A store of the topology.

    :param key_serde: of a window or session store, the serde of the keys without their windows; ``None`` for a buffer,
        and for a store of a user: their serdes are their own affair.
    :param serde_topic: the topic that the serdes get.
    :param is_global: whether each instance has all of it.
    :param retention_ms: how long windows, sessions or old versions are kept; ``None`` for other kinds.
    """

    name: str
    kind: StoreKind
    key_serde: AnySerde | None
    value_serde: AnySerde | None
    serde_topic: str
    is_global: bool
    window_size_ms: int | None
    retention_ms: int | None

    @cached_property
    def key_of_text(self) -> Callable[[str], object] | None:
        """Returns the key that a text means (``pykstreams.serdes.key_texts``); ``None`` where nobody asks by key."""
        return None if self.key_serde is None else key_reader(self.key_serde, self.serde_topic, store=self.name)


class Role(Enum):
    """How current the rows are that an instance has of a partition."""

    ACTIVE = "active"
    """Its task runs here."""
    RESTORING = "restoring"
    """Its task is here, and is being restored."""
    STANDBY = "standby"
    """It is kept as a standby here, while the task runs elsewhere."""
    GLOBAL = "global"
    """It is a global store, which every instance has."""


@dataclass(slots=True)
class HeldPartition:
    """A partition of a store that is in this process; -1 stands for a global store. A value, never changed."""

    partition: int
    role: Role
    store: LocalStore


def described(plan: TopologyPlan, config: StreamsConfig) -> dict[str, StoreDescription]:
    """Describes all stores, by name, in the order of their names."""
    found = {
        name: _description(name, builder, config, plan.serde_topic(name), is_global=False)
        for part in plan.subtopologies
        for name, builder in part.stores.items()
    }
    for one in plan.global_stores:
        found[one.store.name] = _description(one.store.name, one.store, config, one.topic, is_global=True)
    return dict(sorted(found.items()))


def _description(
    name: str, builder: StoreBuilder[TaskStore], config: StreamsConfig, topic: str, *, is_global: bool
) -> StoreDescription:
    store, supplier = builder.build(), builder.supplier
    kind = kind_of(store)
    unknown = kind in (StoreKind.CUSTOM, StoreKind.BUFFER)
    return StoreDescription(
        name,
        kind,
        None if unknown else or_default(builder.key_serde, lambda: config.default_key_serde),
        None if unknown else or_default(builder.value_serde, lambda: config.default_value_serde),
        topic,
        is_global,
        getattr(supplier, "window_size_ms", None) if kind is StoreKind.WINDOW else None,
        supplier.retention_ms if supplier.retention_ms is not None else supplier.history_retention_ms,
    )
