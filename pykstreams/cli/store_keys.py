"""Keys of stores as the command line has them, for the folders of a stopped application."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.state.interfaces.store import TaskStore
    from pykstreams.state.spec import StoreBuilder


def key_of_text(builder: StoreBuilder[TaskStore], config: StreamsConfig, text: str) -> object:
    """Makes the key that a user means by a text, by the key serde of the store."""
    from uuid import UUID

    from pykstreams.core.errors import SerializationError
    from pykstreams.serdes import json_serde, primitives
    from pykstreams.serdes.defaults import or_default

    serde = or_default(builder.key_serde, lambda: config.default_key_serde)
    try:
        match serde:
            case primitives.StringSerde():
                return text
            case primitives.ShortSerde() | primitives.IntegerSerde() | primitives.LongSerde():
                return int(text)
            case primitives.FloatSerde() | primitives.DoubleSerde():
                return float(text)
            case primitives.BooleanSerde():
                return {"true": True, "false": False}[text]
            case primitives.UUIDSerde():
                return UUID(text)
            case primitives.BytesSerde():
                return bytes.fromhex(text)
    except (ValueError, KeyError) as error:
        raise click.BadParameter(
            f"{text!r} is no key of store {builder.name!r}, whose key serde is {serde!r}", param_hint="KEY"
        ) from error
    try:
        if isinstance(serde, json_serde.JsonSerde):
            return serde.deserialize(builder.name, text.encode())
        return json.loads(text)
    except (SerializationError, ValueError):
        return text  # JSON's text needs no quotes here
