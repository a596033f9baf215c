"""``pykstreams backfill``: runs a topology over the history of its topics, so that workers can start at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pykstreams.cli.options import (
    SETTINGS_HELP,
    combined_config,
    need_application_id,
    settings_options,
    topology_argument,
)

if TYPE_CHECKING:
    from pykstreams.spark.backfill import BackfillReport

_TOPIC = "topic:"


@click.command(epilog=SETTINGS_HELP)
@topology_argument
@click.option(
    "--from",
    "sources",
    metavar="TOPIC[=PATH]",
    multiple=True,
    required=True,
    help="The history of a topic: files (Parquet, CSV, JSON, Avro) with the columns key, value and timestamp. Without "
    "a path the topic itself is read, with topic:NAME another one. Once for each topic that the topology reads.",
)
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False),
    help="A new folder for stores and output records.",
)
@click.option(
    "--engine",
    type=click.Choice(["spark", "local"]),
    default="spark",
    show_default=True,
    help="spark: a local Spark session, or the cluster that spark-submit runs this on. local: processes of this "
    "machine, without Spark and Java.",
)
@click.option(
    "--changelog",
    type=click.Choice(["write", "base-only"]),
    default="write",
    show_default=True,
    help="write: also write the changelog topics. base-only: workers need the folder for as long as the stores live.",
)
@click.option(
    "--outputs",
    type=click.Choice(["files", "topics"]),
    default="files",
    show_default=True,
    help="Where output records go: to DIR/records/TOPIC, or into their topics.",
)
@click.option(
    "--source-offsets",
    metavar="now|none|FILE",
    default="now",
    show_default=True,
    help="Where the application goes on: where its input topics end now, where a JSON file says ({topic: {partition: "
    "offset}}), or where workers would begin. A topic that is read itself goes on where it was read to.",
)
@click.option(
    "--partitions",
    metavar="N|TOPIC=N",
    multiple=True,
    help="The partition counts of the topics, where no brokers are asked.",
)
@click.option("--processes", type=click.IntRange(min=1), metavar="N", help="For --engine local. Default: all cores.")
@click.option(
    "--module",
    "modules",
    metavar="PATH",
    multiple=True,
    help="For --engine spark on a cluster: code that the script imports, to be sent along. Can be repeated.",
)
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to ask first (bootstrap.servers).")
@settings_options
def backfill(
    topology: str,
    sources: tuple[str, ...],
    out: str,
    engine: Any,
    changelog: Any,
    outputs: Any,
    source_offsets: str,
    partitions: tuple[str, ...],
    processes: int | None,
    modules: tuple[str, ...],
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
) -> None:
    """Run a topology over the history of its topics, from the first record to the last, as a batch job.

    The topology is the one that workers run, unchanged. Its stores become a bootstrap, which 'pykstreams run ...
    --bootstrap DIR' starts from, at the offsets where the history ends; its output records become files, or are
    written to their topics.

    \b
        pykstreams backfill shop.py --from orders=/lake/orders --from customers=/lake/customers --out /data/shop \\
            --bootstrap-servers localhost:9092
        pykstreams backfill shop.py --from orders --out /data/shop --engine local --bootstrap-servers localhost:9092
        pykstreams run shop.py --bootstrap /data/shop --bootstrap-servers localhost:9092
    """
    from pykstreams.dsl.script import load_script
    from pykstreams.spark import KafkaTopic
    from pykstreams.spark import backfill as run_backfill

    config = combined_config(
        load_script(topology),
        config_file=config_file,
        pairs=pairs,
        options={"application.id": application_id, "bootstrap.servers": bootstrap_servers},
    )
    need_application_id(config)
    histories: dict[str, Any] = {}
    for given in sources:
        topic, equals, path = given.partition("=")
        if not topic or (equals and not path) or topic in histories:
            raise click.UsageError(f"--from is {given!r}; expected TOPIC=PATH, or TOPIC to read that, once for each")
        named = path.removeprefix(_TOPIC) if path.startswith(_TOPIC) else topic
        histories[topic] = KafkaTopic(named) if not path or path.startswith(_TOPIC) else path
    report = run_backfill(
        topology,
        histories,
        out=out,
        engine=engine,
        changelog=changelog,
        outputs=outputs,
        source_offsets=_offsets(source_offsets),
        config=config,
        partitions=_partitions(partitions),
        modules=modules,
        processes=processes,
        progress=True,
    )
    _show(report, out)


def _show(report: BackfillReport, out: str) -> None:
    for name, store in sorted(report.manifest.stores.items()):
        click.echo(f"store {name}: {sum(task.rows for task in store.tasks.values())} rows")
    for topic, count in sorted(report.records.items()):
        where = f" in {len(report.files[topic])} files" if topic in report.files else ""
        click.echo(f"topic {topic}: {count} records{where}")
    click.echo(f"bootstrap {report.manifest.id} in {out}")


def _partitions(given: tuple[str, ...]) -> int | Mapping[str, int] | None:
    if not given:
        return None
    counts: dict[str, int] = {}
    for text in given:
        topic, equals, number = text.rpartition("=")
        if not number.isdecimal() or int(number) < 1 or (equals and not topic) or (not topic and len(given) > 1):
            raise click.UsageError(f"--partitions is {text!r}; expected one number, or TOPIC=NUMBER for each topic")
        if not topic:
            return int(number)
        counts[topic] = int(number)
    return counts


def _offsets(given: str) -> Any:
    if given == "now":
        return given
    if given == "none":
        return None
    try:
        found = json.loads(Path(given).read_text(encoding="utf-8"))
        return {topic: {int(place): int(offset) for place, offset in places.items()} for topic, places in found.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise click.UsageError(
            f"--source-offsets {given!r} cannot be read: {error}; expected now, none, or a JSON file such as "
            '{"orders": {"0": 1200, "1": 1187}}'
        ) from error
