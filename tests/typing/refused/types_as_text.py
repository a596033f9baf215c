"""A type is named, not written as text."""

from __future__ import annotations

from pykstreams import StreamsBuilder

builder = StreamsBuilder()
# error: call-overload of mypy, reportArgumentType of pyright
builder.stream("orders", "str", "int").to("copies")
