"""Keys and values in answers; ``pykstreams.serdes.json_forms`` tells their form."""

from __future__ import annotations

from pykstreams.http.problems import ProblemError
from pykstreams.serdes.json_forms import json_form


def json_bytes(value: object, where: str) -> bytes:
    """Writes a value as JSON; a ``ProblemError`` when it has no such form.

    >>> json_bytes({"id": b"\\x00\\xff"}, "here")
    b'{"id":"AP8="}'
    """
    try:
        return json_form(value)
    except TypeError as error:  # also of what is nested too deep, and of integers beyond 64 bits
        raise ProblemError(
            "no-json",
            f"a {type(value).__qualname__} of {where} has no form in JSON: {error}; read it by KafkaStreams.store, or "
            "keep a dataclass, a pydantic model, a msgspec struct or what JSON has",
        ) from error
