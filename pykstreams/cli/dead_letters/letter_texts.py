"""Dead letters as a user reads them: keys and values by a serde that is named, or as text, or in hexadecimal."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import click

from pykstreams.cli.row_texts import plain, time_text

if TYPE_CHECKING:
    from pykstreams.core.types import Headers
    from pykstreams.runtime.dead_letters.letters import DeadLetter


class Text(NamedTuple):
    """A key or a value as it is shown.

    :param unread: why the serde that was named could not read it; ``None`` if it could, or none was named.
    """

    text: str | None
    unread: str | None = None

    def __str__(self) -> str:
        return f"{self.text} ({self.unread})" if self.unread is not None else "null" if self.text is None else self.text


Shown: TypeAlias = Callable[[bytes | None, "Headers"], Text]
"""Makes the text of a key or a value."""


def shown_by(serde: str | None, topic: str, option: str) -> Shown:
    """Returns what shows bytes of a topic: by a serde, ``long`` or ``shop.serdes:OrderSerde``, where one is named.

    Bytes that the serde cannot read are shown as without one, and said to be so.
    """
    if serde is None:
        return lambda data, headers: Text(None if data is None else plain(data))
    from pykstreams.serdes.base import bind_deserializer

    decode = bind_deserializer(_serde(serde, option), topic)

    def shown(data: bytes | None, headers: Headers) -> Text:
        try:
            found = decode(data, headers)
        except Exception as error:  # of any serde; a letter may well be here because it cannot be read
            return Text(None) if data is None else Text(plain(data), f"not {serde}: {error}")
        return Text(None if found is None else read_text(found))

    return shown


def read_text(found: object) -> str:
    """The text of a key or value that a serde has read; of what JSON is made of, JSON.

    >>> read_text({"item": "tea", "sold": True}), read_text("tea"), read_text(5)
    ('{"item": "tea", "sold": true}', 'tea', '5')
    """
    if isinstance(found, dict | list | bool):
        with suppress(TypeError):  # of keys that are no text
            return json.dumps(found, ensure_ascii=False, default=str)
    return str(found)


def time_or_unknown(ms: int) -> str:
    """A time to read.

    >>> time_or_unknown(1767225600123), time_or_unknown(-1)
    ('2026-01-01T00:00:00.123Z', 'unknown')
    """
    return "unknown" if ms < 0 else time_text(ms)


def as_data(letter: DeadLetter, key: Shown, value: Shown) -> dict[str, object]:
    """A letter for programs."""
    shown_key, shown_value = key(letter.key, letter.headers), value(letter.value, letter.headers)
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp,
        "key": shown_key.text,
        "key_unread": shown_key.unread,
        "value": shown_value.text,
        "value_unread": shown_value.unread,
        "headers": [[name, None if data is None else plain(data)] for name, data in letter.headers],
        "exception": letter.exception,
        "message": letter.message,
        "stacktrace": letter.stacktrace,
        "source": {"topic": letter.source_topic, "partition": letter.source_partition, "offset": letter.source_offset},
        "attempts": letter.attempts,
        "first_failure": letter.first_failure,
        "replays": letter.replays,
    }


def as_text(letter: DeadLetter, key: Shown, value: Shown) -> str:
    """A letter to read."""
    source = "unknown"
    if letter.source_topic is not None:
        source = f"{letter.source_topic}-{letter.source_partition} offset {letter.source_offset}"
    lines = [
        f"{letter.topic}-{letter.partition} offset {letter.offset}, {time_or_unknown(letter.timestamp)}",
        f"  from       {source}",
        f"  key        {key(letter.key, letter.headers)}",
        f"  value      {value(letter.value, letter.headers)}",
        *(f"  header     {name}: {_or_null(None if data is None else plain(data))}" for name, data in letter.headers),
        f"  error      {letter.exception or 'unknown'}: {_or_null(letter.message)}",
    ]
    if letter.attempts is not None:
        first = "" if letter.first_failure is None else f", first failed {time_or_unknown(letter.first_failure)}"
        lines.append(f"  attempts   {letter.attempts}{first}")
    lines += (f"  {line}" for line in (letter.stacktrace or "").rstrip().splitlines())
    return "\n".join(lines)


def _or_null(text: str | None) -> str:
    return "null" if text is None else text


def _serde(name: str, option: str) -> object:
    """The serde of a short name, or of a class ``module:Class``; a usage error for anything else."""
    from pykstreams.core.config import StreamsConfig
    from pykstreams.core.errors import ConfigError
    from pykstreams.serdes import Serdes

    short = {
        found: make
        for found, make in inspect.getmembers(Serdes, inspect.isfunction)
        if all(one.default is not one.empty for one in inspect.signature(make).parameters.values())
    }
    if name in short:
        return short[name]()
    if ":" not in name:
        known = ", ".join(sorted(short))
        raise click.BadParameter(f"{name!r} is no serde; give module:Class, or one of {known}", param_hint=option)
    try:
        found: object = StreamsConfig({"default.value.serde": name}).default_value_serde
    except ConfigError as error:
        raise click.BadParameter(str(error), param_hint=option) from error
    return found
