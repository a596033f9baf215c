"""The output of a backfill besides stores: the records of topics that are not the application's own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pykstreams.bulk.application import Application
from pykstreams.bulk.backfills.logged_rows import batches_of_files
from pykstreams.bulk.backfills.records import AS_SENT, SENT
from pykstreams.bulk.brokers.changelog import TopicOutput
from pykstreams.bulk.engines.sorting import SortedRuns
from pykstreams.bulk.sources.header_columns import headers_of
from pykstreams.state.directory.durable_files import sync_file, sync_folder

RECORDS_FOLDER: Final = "records"


def move_records(root: Path, sent: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Moves the files that count to ``records/<topic>/`` of the bootstrap, where they stay; gives their new paths."""
    found = {}
    for topic, files in sent.items():
        folder = root / RECORDS_FOLDER / topic
        if folder.exists():  # whoever has left it: what is in it from now on are the files that count
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        moved = []
        for number, name in enumerate(files):
            target = folder / f"part-{number:05}.parquet"
            shutil.move(name, target)
            sync_file(target)
            moved.append(str(target))
        sync_folder(folder)
        found[topic] = tuple(moved)
    if found:  # the manifest that follows stands for them, also after a crash of the machine
        sync_folder(root / RECORDS_FOLDER)
        sync_folder(root)
    return found


def write_records(application: Application, sent: Mapping[str, Sequence[str]], scratch: Path) -> None:
    """Writes records to their topics, as topics have them, and waits until they are delivered."""
    scratch.mkdir(parents=True, exist_ok=True)
    for topic, files in sent.items():
        runs = SortedRuns(scratch, topic, SENT, AS_SENT)
        for batch in batches_of_files(files):
            runs.add(batch)
        with TopicOutput(application.config, topic) as write:
            for batch in runs.merged():
                headers = headers_of(batch.column("headers"), batch.num_rows)
                columns: Any = [batch.column(name).to_pylist() for name in ("partition", "key", "value", "timestamp")]
                for partition, key, value, time, each in zip(*columns, headers, strict=True):
                    write((key, value, time, each), partition)
