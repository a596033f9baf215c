"""``pykstreams backfill``: runs a topology over the history of its topics, so that workers can start at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykstreams.cli.jobs.job_options import bulk_jobs, job_options
from pykstreams.cli.options import (
    SETTINGS_HELP,
    combined_config,
    need_application_id,
    settings_options,
    topology_argument,
)

if TYPE_CHECKING:
    from pykstreams.spark import BackfillReport

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
    "--outputs",
    type=click.Choice(["files", "topics"]),
    default="files",
    show_default=True,
    help="Where output records go: to DIR/records/TOPIC, or into their topics.",
)
@job_options
@settings_options
def backfill(
    topology: str,
    sources: tuple[str, ...],
    out: str,
    outputs: str,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    **job: object,
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

    config = combined_config(
        load_script(topology),
        config_file=config_file,
        pairs=pairs,
        options={"application.id": application_id, "bootstrap.servers": bootstrap_servers},
        resolves=True,
    )
    need_application_id(config)
    jobs = bulk_jobs()
    histories: dict[str, object] = {}
    for given in sources:
        topic, equals, path = given.partition("=")
        if not topic or (equals and not path) or topic in histories:
            raise click.UsageError(f"--from is {given!r}; expected TOPIC=PATH, or TOPIC to read that, once for each")
        named = path.removeprefix(_TOPIC) if path.startswith(_TOPIC) else topic
        histories[topic] = jobs.KafkaTopic(named) if not path or path.startswith(_TOPIC) else path
    report = jobs.backfill(topology, histories, out=out, outputs=outputs, config=config, progress=True, **job)
    _show(report, out)


def _show(report: BackfillReport, out: str) -> None:
    for name, store in sorted(report.manifest.stores.items()):
        click.echo(f"store {name}: {sum(task.rows for task in store.tasks.values())} rows")
    for topic, count in sorted(report.records.items()):
        where = f" in {len(report.files[topic])} files" if topic in report.files else ""
        click.echo(f"topic {topic}: {count} records{where}")
    click.echo(f"bootstrap {report.manifest.id} in {out}")
