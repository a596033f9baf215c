"""The scans over a RocksDB: which rows they give, when they end, and that they let go of its files.

What they say about damaged files is tested in ``test_rocksdb.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import pytest
from rocksdict import Rdict

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.state.engines.rocksdb import row_options
from pykstreams.state.engines.rocksdb_errors import EnginePlace
from pykstreams.state.engines.rocksdb_scans import RocksDbScans

KEYS = [b"%02d-%03d" % divmod(number, 100) for number in range(1000)]

MakeScans: TypeAlias = Callable[[int | None], tuple[Rdict, RocksDbScans]]


@pytest.fixture
def make_scans(tmp_path: Path) -> Iterator[MakeScans]:
    made: list[tuple[Rdict, RocksDbScans]] = []

    def make(prefix_bytes: int | None) -> tuple[Rdict, RocksDbScans]:
        path = tmp_path / "rows"
        options, _ = row_options("rows", prefix_bytes, StreamsConfig())
        db = Rdict(str(path), options)
        for key in KEYS:
            db.put(key, b"x")
        made.append((db, RocksDbScans(db, prefix_bytes, EnginePlace("rows", TaskId(0, 1), path))))
        return made[-1]

    yield make
    for db, scans in made:
        scans.close()
        db.close()


@pytest.mark.parametrize("reverse", [False, True], ids=["upwards", "downwards"])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [(None, None), (b"03", b"04"), (b"03-010", b"03-020"), (b"03-099", b"05"), (b"97", None), (None, b"00-001")],
)
@pytest.mark.parametrize("prefix_bytes", [None, 2, 3])
def test_scan_gives_the_rows_between_its_bounds_in_order(
    make_scans: MakeScans, prefix_bytes: int | None, lower: bytes | None, upper: bytes | None, reverse: bool
) -> None:
    _, scans = make_scans(prefix_bytes)
    expected = [key for key in KEYS if (lower is None or lower <= key) and (upper is None or key < upper)]

    found = [key for key, _ in scans.between(lower, upper, reverse)]

    assert found == (expected[::-1] if reverse else expected)


@pytest.mark.parametrize("prefix_bytes", [None, 2, 3])
def test_scan_ends_at_its_bound_whatever_memory_is_used_meanwhile(
    make_scans: MakeScans, prefix_bytes: int | None
) -> None:
    """The iterator reads its bound where the options of the scan lie, which must not be given back before."""
    _, scans = make_scans(prefix_bytes)
    for _ in range(20):
        for number in range(9):
            both = [scans.between(b"%02d" % first, b"%02d" % (first + 1), False) for first in (number, number + 1)]
            filled = [bytes((fill,)) * size for size in range(1, 64) for fill in (0, 255)]

            assert [len(list(scan)) for scan in both] == [100, 100]
            del filled


@pytest.mark.parametrize("reverse", [False, True], ids=["upwards", "downwards"])
@pytest.mark.parametrize("given", [0, 1, 100])
def test_scans_that_are_under_way_fail_when_they_are_closed(make_scans: MakeScans, given: int, reverse: bool) -> None:
    """An end would say that there are no more rows."""
    _, scans = make_scans(None)
    rows = scans.between(None, None, reverse)
    before = list(islice(rows, given))

    scans.close()

    assert len(before) == given
    with pytest.raises(
        InvalidStateStoreError, match=r"^store 'rows' is not open; ask the context for the store again$"
    ):
        next(rows)


@pytest.mark.parametrize("reverse", [False, True], ids=["upwards", "downwards"])
def test_scan_that_was_read_to_its_end_stays_so_when_it_is_closed(make_scans: MakeScans, reverse: bool) -> None:
    _, scans = make_scans(None)
    rows = scans.between(None, None, reverse)
    before = list(rows)

    scans.close()

    assert (len(before), list(rows)) == (len(KEYS), [])


def test_scan_of_few_rows_has_them_all_at_once_and_is_not_ended(make_scans: MakeScans) -> None:
    _, scans = make_scans(None)
    rows = scans.between(b"03-010", b"03-020", False)

    scans.close()

    assert [key for key, _ in rows] == KEYS[310:320]
