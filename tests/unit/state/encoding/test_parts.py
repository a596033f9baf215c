"""Rows in their parts: a layer does the same to them as to packed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykstreams.core.types import Headers
from pykstreams.state.encoding.layout import HEADERS_AND_VALUE, PLAIN, TIMESTAMPED, WITH_HEADERS, Layout
from pykstreams.state.encoding.parts import parts_taker, values_scanner
from pykstreams.state.engines.adapter import AdaptedEngine
from pykstreams.state.engines.memory import MemoryEngine
from pykstreams.state.layers.changelogging import ChangeLogging
from tests.unit.state.support import Context

LAYOUTS = [PLAIN, TIMESTAMPED, WITH_HEADERS, HEADERS_AND_VALUE]
HEADERS: Headers = (("a", b"x"),)


def rows_and_log(path: Path, kept: Layout, shown: Layout, value: bytes | None, *, in_parts: bool) -> object:
    """What is kept and logged of a row that is put over another one."""
    context = Context(path)
    context.record(3, headers=(("of the record", None),))
    engine = MemoryEngine()
    engine.open(context)
    layer = engine if kept is shown else AdaptedEngine(engine, kept, shown)
    logged = ChangeLogging(layer, shown, context.changelog("store"), context.current, "store", key_from=1)
    logged.put(b"-k", shown.pack(b"old", 1, ()))
    headers = HEADERS if shown in (WITH_HEADERS, HEADERS_AND_VALUE) else ()
    if in_parts:
        parts_taker(logged, shown)(b"-k", value, 7, headers)
    else:
        logged.put(b"-k", None if value is None else shown.pack(value, 7, headers))
    return engine.get(b"-k"), context.logged


@pytest.mark.parametrize("value", [b"v", b"", None])
@pytest.mark.parametrize("shown", LAYOUTS)
@pytest.mark.parametrize("kept", LAYOUTS)
def test_a_row_in_parts_is_kept_and_logged_as_a_packed_one(
    kept: Layout, shown: Layout, value: bytes | None, tmp_path: Path
) -> None:
    packed = rows_and_log(tmp_path, kept, shown, value, in_parts=False)

    assert packed == rows_and_log(tmp_path, kept, shown, value, in_parts=True)


@pytest.mark.parametrize("shown", LAYOUTS)
@pytest.mark.parametrize("kept", LAYOUTS)
def test_a_scan_for_values_gives_those_of_the_rows(kept: Layout, shown: Layout, tmp_path: Path) -> None:
    context = Context(tmp_path)
    context.record(3)
    engine = MemoryEngine()
    engine.open(context)
    layer = engine if kept is shown else AdaptedEngine(engine, kept, shown)
    logged = ChangeLogging(layer, shown, context.changelog("store"), context.current, "store")
    for key, value in ((b"a", b"1"), (b"b", b""), (b"c", b"3")):
        logged.put(key, shown.pack(value, 7, HEADERS))

    assert list(values_scanner(logged, shown)(b"b", None, True)) == [(b"c", b"3"), (b"b", b"")]
