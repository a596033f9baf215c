"""How a store waits to be made: some choices are known only with the configuration of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from pykstreams.core.config import StreamsConfig
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder


class StoreFactory(Protocol):
    """Returns the builder of a store once the configuration is known."""

    @property
    def name(self) -> str:
        """The name of the store."""
        ...

    @property
    def logging(self) -> bool:
        """Whether the store is to have a changelog."""
        ...

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        """The builder for this run."""
        ...


@dataclass(frozen=True, slots=True)
class GivenStore:
    """A store whose builder the user gave (``StoreBuilderWrapper``, 4.3.1)."""

    given: StoreBuilder[TaskStore]

    @property
    def name(self) -> str:
        return self.given.name

    @property
    def logging(self) -> bool:
        return self.given.logging

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        return self.given


def given_store(builder: object) -> GivenStore:
    """The store of a builder that a user gave; ``TypeError``, which says what to give, for what is none."""
    if not isinstance(builder, StoreBuilder):
        raise TypeError(
            f"builder is {builder!r}; expected a StoreBuilder such as Stores.key_value_store_builder(supplier) makes"
        )
    return GivenStore(builder)


def factory_of(given: StoreBuilder[TaskStore] | StoreFactory) -> StoreFactory:
    """The store that a topology was given: by a builder of a user, or as the DSL makes it."""
    if isinstance(given, StoreBuilder) or not hasattr(given, "builder"):
        return given_store(given)
    return given


def is_same_store(one: StoreFactory, other: StoreFactory) -> bool:
    """Whether two factories stand for one store: they are one object, or hold one and the same builder of a user.

    Identity decides. Factories and builders are plain descriptions, so those of two tables may well be equal
    (``StoreFactory.isCompatibleWith``, 4.3.1).
    """
    if isinstance(one, GivenStore) and isinstance(other, GivenStore):
        return one.given is other.given
    return one is other


def store_for_run(factory: StoreFactory, config: StreamsConfig, *, logging: bool) -> StoreBuilder[TaskStore]:
    """The builder as it is used: without cache where the worker has none, without changelog where a topic serves."""
    builder = factory.builder(config)
    caching = builder.caching and config.statestore_cache_max_bytes > 0
    if logging:
        return replace(builder, caching=caching)
    return replace(builder, caching=caching, logging=False, topic_config={})


def global_store_for_run(factory: StoreFactory, config: StreamsConfig) -> StoreBuilder[TaskStore]:
    """The builder of a global store, whose topic is its changelog."""
    return store_for_run(factory, config, logging=False)
