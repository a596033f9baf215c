"""Finds the serdes of a store, its own or the defaults of the configuration, and binds them to its changelog topic."""

from __future__ import annotations

from typing import cast

from pykstreams.core.errors import ConfigError
from pykstreams.core.store_topic import StoreTopic
from pykstreams.core.types import Encoder
from pykstreams.serdes.base import AnySerde, Serde, bind_deserializer, bind_serializer
from pykstreams.serdes.defaults import default_part, or_default
from pykstreams.state.encoding.layout import Layout
from pykstreams.state.interfaces.store import StoreContext
from pykstreams.state.layers.rows import KeyEncoder, RowCodec


def bound_codec(
    name: str,
    key_serde: object,
    value_serde: object,
    layout: Layout,
    context: StoreContext,
    *,
    topic: str | None = None,
) -> RowCodec:
    """Makes the codec of a store that is being opened; ``topic`` is what serdes get instead of its changelog."""
    topic = context.changelog_topic(name) if topic is None else topic

    def bind_prefix(serializer: object) -> Encoder:
        return bind_serializer(_serde(serializer, name, context, "key"), topic)

    keys = _serde(key_serde, name, context, "key")
    values = _serde(value_serde, name, context, "value")
    read_by = StoreTopic.of(topic, name)
    return RowCodec(
        layout,
        cast("KeyEncoder", bind_serializer(keys.serializer, topic)),
        bind_deserializer(keys.deserializer, read_by),
        bind_serializer(values.serializer, topic),
        bind_deserializer(values.deserializer, read_by),
        bind_prefix,
        keys.serializer,
        values.serializer,
    )


def _serde(given: object, name: str, context: StoreContext, side: str) -> AnySerde:
    side = default_part(given, side)

    def default() -> Serde[object]:
        return cast("Serde[object]", getattr(context.config, f"default_{side}_serde"))

    try:
        return cast("AnySerde", or_default(given, default))
    except ConfigError as error:
        raise ConfigError(
            f"store {name!r} of task {context.task_id} has no {side} serde ({error}); give it one where "
            f"it is made ({side}_serde=...), or set default.{side}.serde"
        ) from error
