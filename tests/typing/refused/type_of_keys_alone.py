"""The type of keys needs that of values beside it."""

from __future__ import annotations

from pykstreams import StreamsBuilder

builder = StreamsBuilder()
# error: call-overload of mypy, reportArgumentType of pyright
builder.stream("orders", str).to("copies")
