"""Files of sorted rows: their sizes, their hashes, what they refuse, and the memory they do not need."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from pykstreams.core.errors import ProcessorStateError
from pykstreams.state import Stores
from pykstreams.state.bulk.sst import SstFiles
from tests.unit.state.bulk.bulk_support import CONFIG, counts


@pytest.fixture
def make_files(tmp_path: Path) -> Callable[..., SstFiles]:
    def make(max_bytes: int = 1 << 20) -> SstFiles:
        return SstFiles(tmp_path, "stores/counts/0_0", "7-1", counts(), CONFIG, max_bytes)

    return make


def numbered(first: int, last: int) -> list[tuple[bytes, bytes]]:
    return [(b"%06d" % number, hashlib.shake_256(b"%d" % number).digest(200)) for number in range(first, last)]


def test_a_file_tells_its_rows_its_hash_and_its_first_and_last_key(
    make_files: Callable[..., SstFiles], tmp_path: Path
) -> None:
    files = make_files()
    files.add([(b"a", b"1")])
    files.add([(b"a\0", b"2"), (b"b", b"3")])
    (file,) = files.finish()
    content = (tmp_path / file.path).read_bytes()

    assert (file.path, file.rows, file.first, file.last) == ("stores/counts/0_0/7-1-0.sst", 3, b"a", b"b")
    assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_a_new_file_begins_when_one_is_full(make_files: Callable[..., SstFiles]) -> None:
    files = make_files(max_bytes=500_000)
    for first in range(0, 6000, 100):
        files.add(numbered(first, first + 100))
    found = files.finish()

    assert len(found) > 2
    assert sum(file.rows for file in found) == 6000
    assert all(before.last < after.first for before, after in pairwise(found))
    assert all(file.size < 1_000_000 for file in found)


def test_no_rows_make_no_file(make_files: Callable[..., SstFiles], tmp_path: Path) -> None:
    files = make_files()
    files.add([])

    assert files.finish() == []
    assert list(tmp_path.rglob("*.sst")) == []


@pytest.mark.parametrize("second", [b"a", b"b"], ids=["descending", "twice"])
def test_keys_that_do_not_ascend_are_refused(make_files: Callable[..., SstFiles], second: bytes) -> None:
    files = make_files()
    files.add([(b"b", b"1")])

    with pytest.raises(ProcessorStateError, match=r"rows of store 'counts' .* Keys must ascend as unsigned bytes"):
        files.add([(second, b"2")])


def test_keys_that_do_not_ascend_from_file_to_file_are_refused(make_files: Callable[..., SstFiles]) -> None:
    files = make_files(max_bytes=1)
    files.add(numbered(0, 4000)[:3000])
    full = files.finish()[-1]

    with pytest.raises(ProcessorStateError, match="a file of theirs ends with"):
        files.add([(full.last, b"again")])


def test_keys_are_ordered_as_unsigned_bytes(make_files: Callable[..., SstFiles]) -> None:
    files = make_files()
    files.add([(b"\x7f", b""), (b"\x80", b""), (b"\xff", b""), (b"\xff\0", b"")])

    assert files.finish()[0].rows == 4


def test_the_users_options_reach_the_files(tmp_path: Path) -> None:
    heard: list[str] = []
    config = CONFIG.replace({"rocksdb.config.setter": lambda store, options, configs: heard.append(store)})
    builder = Stores.key_value_store_builder(Stores.persistent_key_value_store("tuned"))
    SstFiles(tmp_path, "stores/tuned/0_0", "0-0", builder, config).finish()

    assert heard == ["tuned"]
