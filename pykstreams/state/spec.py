"""The description of a store before it is made: its builder, and the supplier of its lowest layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pykstreams.core.types import flag
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.user_stores import StateStore, UserStore, check_name

S_co = TypeVar("S_co", covariant=True)
T_co = TypeVar("T_co", bound=TaskStore, covariant=True)


class StoreSupplier(ABC, Generic[S_co]):
    """Makes the lowest layer of a store, or a whole store that a user has written, once per task."""

    name: str
    """The name of the store."""

    metrics_scope: str
    """The kind of store in the tags of metrics."""

    @property
    def retention_ms(self) -> int | None:
        """How long windows and sessions are kept; ``None`` for stores of other kinds."""
        return None

    @property
    def history_retention_ms(self) -> int | None:
        """How long old versions are kept; ``None`` for stores of other kinds."""
        return None

    @property
    def disk_form(self) -> str | None:
        """The form in which rows lie on disk, in words that its files keep; ``None`` where it never changes."""
        return None

    @abstractmethod
    def get(self) -> S_co:
        """Makes it; it is opened later."""


def user_store(builder: StoreBuilder[Any]) -> Any:
    """Makes the store of a user's supplier; ``TypeError`` for what is no store, ``ValueError`` for another name."""
    if builder.caching:
        raise ValueError(f"store {builder.name!r} is a store of your own, which has no record cache; leave out caching")
    store = builder.supplier.get()
    if not isinstance(store, StateStore) or isinstance(store, TaskStore):
        raise TypeError(
            f"supplier {builder.supplier!r} gave {store!r}; expected an object of a class derived from StateStore. "
            "For stores of the package take a builder of Stores"
        )
    check_name(store, builder.name)
    return UserStore(store)


@dataclass(frozen=True, slots=True)
class StoreBuilder(Generic[T_co]):
    """A store to be built once per task.

    :param supplier: makes the lowest layer.
    :param make: puts the layers over it; chosen by the kind of store. Left out, the supplier makes a whole store, one
        that a user has written (``StateStore``).
    :param key_serde, value_serde: ``None`` for the defaults of the configuration.
    :param caching: whether the store has a part of the record cache.
    :param logging: whether it has a changelog.
    :param topic_config: settings of the changelog topic.
    :param changelog_retention_ms: how long the changelog keeps windows and sessions; ``None``: as long as the supplier.
    """

    supplier: StoreSupplier[Any]
    make: Callable[[StoreBuilder[T_co]], T_co] = field(default=user_store, repr=False)
    key_serde: Any = None
    value_serde: Any = None
    caching: bool = False
    logging: bool = True
    topic_config: Mapping[str, str] = field(default_factory=dict)
    changelog_retention_ms: int | None = None

    def __post_init__(self) -> None:
        flag(self.caching, f"caching of store {self.name!r}")
        flag(self.logging, f"logging of store {self.name!r}")

    @property
    def name(self) -> str:
        """The name of the store."""
        return self.supplier.name

    @property
    def logging_enabled(self) -> bool:
        """Whether the store has a changelog."""
        return self.logging

    @property
    def retention_ms(self) -> int | None:
        """How long the changelog keeps windows and sessions."""
        given = self.changelog_retention_ms
        return self.supplier.retention_ms if given is None else given

    @property
    def history_retention_ms(self) -> int | None:
        """How long old versions are kept."""
        return self.supplier.history_retention_ms

    def build(self) -> T_co:
        """Makes the store of one task; ``init`` opens it."""
        made = self.make(self)
        made.metrics_scope = getattr(self.supplier, "metrics_scope", "")
        return made


def checked_name(name: Any) -> str:
    """Returns a valid name of a store; ``TypeError`` for anything but text."""
    if not isinstance(name, str):
        raise TypeError(f"name of a store is {name!r}; expected text")
    return name


class ConnectedStoreProvider(Protocol):
    """A supplier of processors that brings stores: they are added, and connected to what it supplies."""

    def stores(self) -> Collection[StoreBuilder[Any]] | None:
        """The builders of the stores; several suppliers may bring the same one."""
        ...
