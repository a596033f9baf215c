"""The description of an application's state, in words and as a fingerprint: equal ones can read each other's files.

Two topologies that describe a store alike read the same files. Names of modules and addresses are no part of it: a
script is called differently by the job that writes and the worker that reads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.serdes.defaults import default_part, or_default
from pykstreams.state.encoding.layout import Layout
from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.interfaces.store import KeyValueStore
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import WindowStore
from pykstreams.state.key_values.subscriptions import SubscriptionStore
from pykstreams.state.layers.engine_store import EngineStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.windows.suppliers import WindowBytesStoreSupplier

_KINDS: Final[tuple[tuple[type[Any], str], ...]] = (
    (SubscriptionStore, "subscription"),
    (VersionedKeyValueStore, "versioned"),
    (KeyValueStore, "key-value"),
    (WindowStore, "window"),
    (SessionStore, "session"),
    (EngineStore, "buffer"),
)
_SHAPE: Final = (
    "window_size_ms",
    "retention_period_ms",
    "history_ms",
    "segment_interval_ms",
    "retain_duplicates",
    "time_ordered",
)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_CLASS: Final = re.compile(r"<class '(?:[^'.]*\.)*([^'.]+)'>")
_OBJECT: Final = re.compile(r"<(?:[^ .]*\.)*([^ .]+) object>")


class PlannedPart(Protocol):
    """The used part of a sub-topology."""

    @property
    def id(self) -> int: ...

    @property
    def stores(self) -> Mapping[str, StoreBuilder[Any]]: ...

    @property
    def changelogs(self) -> Mapping[str, str]: ...


class Plan(Protocol):
    """The used part of the plan of a topology."""

    @property
    def subtopologies(self) -> Sequence[PlannedPart]: ...


@dataclass(frozen=True, slots=True)
class StoreDescription:
    """One store.

    :param kind: ``key-value``, ``window``, ``session``, ``versioned``, ``subscription``, ``buffer`` (of one operator)
        or ``other``.
    :param layout: what its rows keep beside the value.
    :param shape: times and choices that its keys depend on, by name.
    :param in_files: whether its rows lie in a database on disk, so that there are files for it.
    :param changelog: the topic that it is restored from, ``None`` for a store without one.
    """

    name: str
    kind: str
    layout: str
    shape: Mapping[str, int]
    key_serde: str
    value_serde: str
    subtopology: int
    in_files: bool
    changelog: str | None


def described(plan: Plan, config: StreamsConfig) -> dict[str, StoreDescription]:
    """Describes every store that belongs to tasks, by name."""
    return {
        name: describe_store(builder, config, part.id, part.changelogs.get(name))
        for part in plan.subtopologies
        for name, builder in part.stores.items()
    }


def describe_store(
    builder: StoreBuilder[Any], config: StreamsConfig, subtopology: int, changelog: str | None
) -> StoreDescription:
    """Describes a store."""
    store, supplier = builder.build(), builder.supplier
    kind = next((kind for type_, kind in _KINDS if isinstance(store, type_)), "other")
    shape = {name: int(getattr(supplier, name)) for name in _SHAPE if hasattr(supplier, name)}
    if isinstance(supplier, WindowBytesStoreSupplier):
        order = supplier.row_order
        shape |= {"in_order_of_time": int(order.by_time), "reads_keys_by_segment": int(order.indexed)}
    return StoreDescription(
        builder.name,
        kind,
        _layout(supplier),
        shape,
        _serde(builder.key_serde, config, "key"),
        _serde(builder.value_serde, config, "value"),
        subtopology,
        isinstance(store, EngineStore) and store.persistent,
        changelog,
    )


def fingerprint(descriptions: Collection[StoreDescription]) -> str:
    """A hash over what makes the state of some stores readable."""
    ordered = [asdict(one) for one in sorted(descriptions, key=lambda one: one.name)]
    return hashlib.sha256(json.dumps(ordered, sort_keys=True).encode()).hexdigest()


def differences(written: StoreDescription, planned: StoreDescription) -> list[str]:
    """The differences, in words."""
    old, new = asdict(written), asdict(planned)
    return [f"{name} was {old[name]!r} and is {new[name]!r}" for name in old if old[name] != new[name]]


def _layout(supplier: object) -> str:
    found = getattr(supplier, "layout", None)
    return found.name if isinstance(found, Layout) else "its own"


def _serde(given: object, config: StreamsConfig, side: str) -> str:
    part = default_part(given, side)
    try:
        found = or_default(given, lambda: getattr(config, f"default_{part}_serde"))
    except ConfigError:
        return "none"
    return _OBJECT.sub(r"\1", _CLASS.sub(r"\1", _ADDRESS.sub("", repr(found))))
