"""Jobs that die, run out of disk, or have tasks that run twice leave nothing that a worker would read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pykstreams import Consumed, Materialized, Serdes, StreamsBuilder, StreamsConfig, Topology
from pykstreams.bulk.application import Application
from pykstreams.bulk.engines.local import build_task, encode_part
from pykstreams.bulk.engines.processes import Pool
from pykstreams.bulk.publication import built_store
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.cli.app import cli
from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import BootstrapError
from pykstreams.serdes import JsonSerde
from pykstreams.spark import Files, StoreBootstrap, bootstrap
from pykstreams.state.bulk.job_lock import LOCK
from pykstreams.state.bulk.manifest import Manifest, garbage, new_id, publish, read, verify
from pykstreams.state.directory.file_lock import FileLock

PATIENCE_S = 60.0
STUCK = """
import threading
from pathlib import Path

from pykstreams.state.directory.file_lock import FileLock
from tests.unit.bulk.test_faults import topology as build

application_id = "shop"

def key_of(row):
    # two processes come to where nothing goes on, and hold a lock for as long as they live
    if row["id"] in ("c1000", "c1500") and (Path(__file__).parent / "stuck").exists():
        FileLock(Path(__file__).with_name(row["id"])).take()
        threading.Event().wait()
    return row["id"]
"""
CONFIG = {"application.id": "shop", "bootstrap.servers": "nowhere:9"}
ROWS = 2000
PATHS = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}


def topology() -> Topology:
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=Serdes.string(), value_serde=JsonSerde())
    builder.table("customers", consumed, materialized=Materialized("customers"))
    return builder.build(StreamsConfig(CONFIG))


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [f"c{number}" for number in range(ROWS)]}), path, row_group_size=500)
    return str(path)


def make(source: str, out: Path, **said: Any) -> Manifest:
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 2, **said}
    spec = StoreBootstrap("customers", source, key="id", timestamp=1)
    return bootstrap(topology(), [spec], out=out, config=CONFIG, **options).manifest


def in_a_process_of_its_own(before: str, source: str, out: Path) -> subprocess.CompletedProcess[str]:
    """Makes a bootstrap there, after some other lines."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_faults
from pathlib import Path
{before}
test_faults.make({source!r}, Path({str(out)!r}))
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_a_driver_that_is_killed_in_the_commit_leaves_no_bootstrap(source: str, tmp_path: Path) -> None:
    killed = "import os, signal\nPath.rename = lambda path, target: os.kill(os.getpid(), signal.SIGKILL)"
    ended = in_a_process_of_its_own(killed, source, tmp_path / "out")

    assert -9 == ended.returncode
    with pytest.raises(BootstrapError, match="there is no bootstrap"):
        read(tmp_path / "out")

    manifest = make(source, tmp_path / "out")

    assert [] == verify(tmp_path / "out", manifest)
    assert ROWS == sum(task.rows for task in manifest.stores["customers"].tasks.values())
    assert 3 == len(garbage(tmp_path / "out")), "two files and an unfinished manifest of the first attempt"


def test_processes_of_a_driver_that_is_killed_end_and_its_folder_can_be_used_again(source: str, tmp_path: Path) -> None:
    script, out = tmp_path / "stuck_shop.py", tmp_path / "out"
    script.write_text(STUCK)
    (tmp_path / "stuck").touch()
    spec = ["--store", "customers", "--from", source, "--key", "stuck_shop:key_of", "--changelog", "base-only"]
    rest = ["--engine", "local", "--processes", "2", "--source-offsets", "none", "--partitions", "2"]
    job = ["bootstrap", str(script), *spec, *rest, "--out", str(out)]
    locks = [tmp_path / "c1000", tmp_path / "c1500"]
    driver = subprocess.Popen([sys.executable, "-m", "pykstreams", *job], cwd=tmp_path, env=PATHS)
    try:
        wait_until(lambda: all(lock.exists() and not is_free(lock) for lock in locks))
        for busy in (job, ["bootstrap", "gc", str(out)]):
            assert "a job is writing to" in CliRunner().invoke(cli, busy).output
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: all(map(is_free, locks)))

    assert any(".arrow" in name for name in garbage(out)), "the first two parts were sorted"
    cleaned = CliRunner().invoke(cli, ["bootstrap", "gc", str(out)])
    assert (0, [LOCK]) == (cleaned.exit_code, [path.name for path in out.iterdir()]), cleaned.output

    (out / ".work-of-another-job-that-was-killed").mkdir()
    (tmp_path / "stuck").unlink()
    done = subprocess.run([sys.executable, "-m", "pykstreams", *job], cwd=tmp_path, env=PATHS, capture_output=True)

    assert 0 == done.returncode, done.stderr
    assert [] == verify(out, read(out))
    assert ["manifest.json", "stores"] == sorted(path.name for path in out.iterdir())


def test_a_call_that_fails_ends_the_others(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Pool(2) as pool:
        pool.run([(hold, (str(tmp_path / "lock"),)), (fail_when_held, (str(tmp_path / "lock"),))], lambda done: None)

    assert is_free(tmp_path / "lock")


def hold(path: str) -> None:
    FileLock(Path(path)).take()
    threading.Event().wait()


def fail_when_held(path: str) -> None:
    wait_until(lambda: Path(path).exists() and not is_free(Path(path)))
    raise ZeroDivisionError


def is_free(path: Path) -> bool:
    lock = FileLock(path)
    try:
        return lock.take()
    finally:
        lock.release()


def wait_until(condition: Callable[[], bool]) -> None:
    clock, pause = SystemClock(), threading.Event()
    deadline = clock.monotonic() + PATIENCE_S
    while not condition():
        assert clock.monotonic() < deadline
        pause.wait(0.02)


def test_a_full_disk_fails_the_job_and_nothing_is_published(source: str, tmp_path: Path) -> None:
    full = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    full += "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))"
    ended = in_a_process_of_its_own(full, source, tmp_path / "out")

    assert ended.returncode == 1
    assert "Error" in ended.stderr
    with pytest.raises(BootstrapError, match="there is no bootstrap"):
        read(tmp_path / "out")


def test_a_task_that_ran_twice_counts_once_and_its_other_files_are_garbage(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both attempts tell what they made, as a speculative one that is not killed in time does."""
    job, scratch = _job(source, tmp_path)
    told = [build_task(job, task, str(scratch)) for task in range(job.tasks)]
    monkeypatch.setattr("os.getpid", lambda: 4711)
    again = [build_task(job, task, str(scratch)) for task in range(job.tasks)]
    once, twice = built_store(job, told, {}), built_store(job, [*again[:1], *told, *again], {})
    stores = {"customers": twice.manifest}
    publish(tmp_path / "out", Manifest(new_id(), "shop", 0, "base-only", {}, stores))

    assert ROWS == once.rows == twice.rows
    contents = [[task.content for task in one.manifest.tasks.values()] for one in (once, twice)]
    assert contents[0] == contents[1]
    assert 2 == len(garbage(tmp_path / "out"))


def test_a_task_that_told_nothing_is_missed(source: str, tmp_path: Path) -> None:
    job, scratch = _job(source, tmp_path)
    told = [build_task(job, task, str(scratch)) for task in range(job.tasks)]

    with pytest.raises(BootstrapError, match=r"some have told nothing .*partition=1, split=0"):
        built_store(job, [told[0], told[2]], {})
    with pytest.raises(BootstrapError, match="some have told nothing"):
        built_store(job, told[:2], {})
    divided = job.divided({0: (b"c5",)})
    with pytest.raises(BootstrapError, match="tasks that are none of the job"):
        built_store(job, [build_task(divided, 1, str(scratch)), *told], {})


def _job(source: str, folder: Path) -> tuple[StoreJob, Path]:
    """A job whose first phase has been."""
    application = Application(topology(), CONFIG)
    spec = StoreBootstrap("customers", source, key="id")
    job = StoreJob(application, spec, application.layout(2), 0, str(folder / "out"), logs=False)
    scratch = folder / "scratch"
    scratch.mkdir()
    for number, part in enumerate(Files(source).parts()):
        encode_part(job, part, str(scratch), number)
    return job, scratch
