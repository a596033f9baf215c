"""The manifest: what is published, what cannot be, what is read, and what is wrong with what cannot be read."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import BootstrapError
from pykstreams.core.ids import TaskId
from pykstreams.state import Stores
from pykstreams.state.bulk.description import StoreDescription, differences, fingerprint
from pykstreams.state.bulk.manifest import Manifest, content_hash, garbage, new_id, publish, read, verify
from tests.unit.state.bulk.bulk_support import ID, Part, bootstrap, counts, rows_of

TWO_TASKS = {0: Part(rows_of({"a": "1", "b": "2"}), 2), 1: Part([], 0)}


@pytest.fixture
def published(tmp_path: Path) -> Manifest:
    manifest = bootstrap(
        tmp_path, [(counts(), TWO_TASKS)], source_times={"orders": {0: 5}}, metadata={"0_1": {"emitted": 7}}
    )
    publish(tmp_path, manifest)
    return manifest


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Writes the manifest anew, with a change."""
    path = folder / "manifest.json"
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def test_what_is_published_is_read_again(published: Manifest, tmp_path: Path) -> None:
    assert read(tmp_path) == published
    assert verify(tmp_path, published) == []
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", "stores"}


def test_an_empty_task_has_an_entry(published: Manifest) -> None:
    found = published.task_files(TaskId(0, 1))["counts"]

    assert (found.files, found.rows, found.content) == ((), 0, 0)
    assert published.task_files(TaskId(1, 0)) == {}


def test_a_second_bootstrap_needs_another_folder(published: Manifest, tmp_path: Path) -> None:
    with pytest.raises(BootstrapError, match=f"holds bootstrap {ID} already"):
        publish(tmp_path, replace(published, id=new_id()))


def test_a_missing_task_is_not_published(tmp_path: Path) -> None:
    manifest = bootstrap(tmp_path, [(counts(), {0: Part([]), 2: Part([])})])

    with pytest.raises(BootstrapError, match=r"has the tasks \[0, 2\], and one is missing"):
        publish(tmp_path, manifest)
    assert not (tmp_path / "manifest.json").exists()


def test_stores_of_one_sub_topology_need_equal_numbers_of_tasks(tmp_path: Path) -> None:
    manifest = bootstrap(tmp_path, [(counts(), TWO_TASKS), (counts("sums"), {0: Part([])})])

    with pytest.raises(BootstrapError, match="store 'sums' has 1 tasks, and 'counts' of the same sub-topology has 2"):
        publish(tmp_path, manifest)


def test_a_missing_file_is_not_published(tmp_path: Path) -> None:
    manifest = bootstrap(tmp_path, [(counts(), TWO_TASKS)])
    (tmp_path / "stores/counts/0_0/0-0-0.sst").unlink()

    with pytest.raises(BootstrapError, match=r"stores/counts/0_0/0-0-0\.sst is missing"):
        publish(tmp_path, manifest)


def test_base_only_is_refused_for_a_store_in_memory(tmp_path: Path) -> None:
    builder = Stores.key_value_store_builder(Stores.in_memory_key_value_store("lately"))
    manifest = bootstrap(tmp_path, [(builder, {0: Part([])})], changelog="base-only")

    with pytest.raises(BootstrapError, match=r"store 'lately' is not kept on disk.*use changelog='write'"):
        publish(tmp_path, manifest)


def test_base_only_is_refused_for_a_store_that_retains_duplicates(tmp_path: Path) -> None:
    builder = Stores.window_store_builder(Stores.persistent_window_store("joined", 10, 5, True))
    manifest = bootstrap(tmp_path, [(builder, {0: Part([])})], changelog="base-only")

    with pytest.raises(BootstrapError, match="store 'joined' numbers its rows by its changelog"):
        publish(tmp_path, manifest)


def test_a_folder_without_manifest_is_no_bootstrap(tmp_path: Path) -> None:
    bootstrap(tmp_path, [(counts(), TWO_TASKS)])

    with pytest.raises(BootstrapError, match=r"there is no bootstrap in .*: manifest\.json is missing"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found.update(format=2), "has the format 2; this release reads format 1"),
        (lambda found: found.pop("source_offsets"), "is damaged: KeyError 'source_offsets'"),
        (lambda found: found.update(id=5), "is damaged: TypeError 5 stands where text is expected"),
        (lambda found: found["stores"]["counts"].update(layout="plain"), "its fingerprint is not that of the stores"),
        (lambda found: found["stores"]["counts"]["tasks"].pop("1"), "store 'counts' has 1 of 2 tasks"),
        (lambda found: found["stores"]["counts"]["tasks"].pop("0"), "store 'counts' has 1 of 2 tasks"),
        (lambda found: found["stores"]["counts"]["tasks"]["0"].update(rows=9), "counts other rows than its files"),
    ],
)
def test_a_damaged_manifest_is_refused_with_what_is_wrong(
    published: Manifest, tmp_path: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    changed(tmp_path, change)

    with pytest.raises(BootstrapError, match=said):
        read(tmp_path)


def test_a_manifest_that_is_no_json_is_refused(published: Manifest, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")

    with pytest.raises(BootstrapError, match="cannot be read: Expecting"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), r"has \d+ bytes instead of \d+"),
        (lambda path: path.write_bytes(b"?" + path.read_bytes()[1:]), "is damaged: its sha256 is "),
    ],
)
def test_a_damaged_file_is_found(
    published: Manifest, tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(tmp_path / "stores/counts/0_0/0-0-0.sst")
    (found,) = verify(tmp_path, published)

    assert re.match(rf"stores/counts/0_0/0-0-0\.sst {said}", found)
    assert len(verify(tmp_path, published, hashes=False)) == (0 if "sha256" in said else 1)


def test_files_of_attempts_that_did_not_count_are_garbage(published: Manifest, tmp_path: Path) -> None:
    second = tmp_path / "stores/counts/0_0/1-0-0.sst"
    second.write_bytes(b"")
    unfinished = tmp_path / ".unfinished-manifest.json-5"
    unfinished.write_bytes(b"{")

    (tmp_path / "notes.txt").write_text("somebody else's")

    assert garbage(tmp_path) == [unfinished.name, "stores/counts/0_0/1-0-0.sst"]


def test_content_hash_depends_on_rows_alone() -> None:
    rows = [(b"%d" % number, b"v%d" % number) for number in range(100)]
    shuffled = random.Random(1).sample(rows, len(rows))

    assert content_hash(rows) == content_hash(shuffled[50:], content_hash(shuffled[:50]))
    assert content_hash(rows) != content_hash(rows[1:])
    assert content_hash([(b"ab", b"c")]) != content_hash([(b"a", b"bc")])


def test_fingerprint_does_not_depend_on_the_order_of_stores() -> None:
    one = StoreDescription("one", "window", "plain", {"window_size_ms": 5}, "A()", "B()", 0, True, "one-changelog")
    two = replace(one, name="two")

    assert fingerprint([one, two]) == fingerprint([two, one])
    assert fingerprint([one]) != fingerprint([replace(one, shape={"window_size_ms": 6})])
    assert differences(one, replace(one, value_serde="C()")) == ["value_serde was 'B()' and is 'C()'"]
