"""``pykstreams bootstrap APP``: makes state from snapshots."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pykstreams.cli.options import combined_config, need_application_id, settings_options, topology_argument

if TYPE_CHECKING:
    from pykstreams.spark import StoreBootstrap

_OPTIONS = {
    "key": "key",
    "value": "value",
    "timestamp": "timestamp",
    "row": "row",
    "window_start": "window_start",
    "window_end": "window_end",
    "content": "content",
    "latest": "latest",
    "on_error": "on_error",
    "node": "node",
}
"""Keys of a table in a file of stores -> parameters of ``StoreBootstrap``."""


@click.command()
@topology_argument
@click.option("--store", metavar="NAME", help="The store to make.")
@click.option("--from", "source", metavar="PATH", help="A file or folder with its rows, or topic:NAME.")
@click.option("--key", metavar="COLUMN", help="Column of the key, or module:function of a row.")
@click.option(
    "--value",
    "values",
    metavar="COLUMN",
    multiple=True,
    help="Column of the value, or module:function of a row. Several give an object of these, none one of all columns.",
)
@click.option("--timestamp", metavar="COLUMN", help="Column of the timestamp; the time of the job if left out.")
@click.option("--row", metavar="MODULE:FUNCTION", help="Instead of these: row -> (key, value, timestamp in ms).")
@click.option("--window-start", metavar="COLUMN", help="Where a window or session starts, for rows that are windows.")
@click.option("--window-end", metavar="COLUMN", help="Where a session ends.")
@click.option(
    "--content",
    type=click.Choice(["entries", "records", "changelog"]),
    help="What the rows are: what the store holds; records for the operator that makes the store; changelog records.",
)
@click.option("--latest", is_flag=True, help="Of several rows of a key the newest counts.")
@click.option(
    "--on-error",
    type=click.Choice(["fail", "count", "rejects"]),
    default="fail",
    show_default=True,
    help="What becomes of rows that cannot be taken; rejects writes them to files.",
)
@click.option(
    "--stores",
    "stores_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Several stores, as tables [stores.NAME] of a TOML or JSON file, with keys like these options.",
)
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    help="Folder of the bootstrap, or a URL such as s3://bucket/shop; a new one.",
)
@click.option("--engine", type=click.Choice(["local", "spark"]), default="spark", show_default=True)
@click.option("--processes", type=click.IntRange(min=1), help="Processes of the local engine; one a core if left out.")
@click.option(
    "--changelog",
    type=click.Choice(["write", "base-only"]),
    default="write",
    show_default=True,
    help="Whether the rows go to the changelog topics, too. If not, DIR is needed as long as the stores live.",
)
@click.option(
    "--source-offsets",
    metavar="now|none|FILE",
    default="now",
    show_default=True,
    help="Where the application goes on: at the ends of its inputs as they are before the snapshot is read; where the "
    "workers choose; or at the offsets of a JSON file, topic -> partition -> next offset.",
)
@click.option(
    "--partitions", type=click.IntRange(min=1), help="Partitions of the inputs; the brokers are asked if left out."
)
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to ask first (bootstrap.servers).")
@settings_options
def build(
    topology: str,
    store: str | None,
    source: str | None,
    values: tuple[str, ...],
    stores_file: Path | None,
    out: str,
    engine: Any,
    processes: int | None,
    changelog: Any,
    source_offsets: str,
    partitions: int | None,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    **said: Any,
) -> None:
    """Make the state of stores from a snapshot: files, a topic, or with Spark whatever Spark reads.

    The rows are turned into a store by the application's own topology and serdes. The folder is a bootstrap when the
    job has ended well, and nothing before.

    \b
        pykstreams bootstrap shop.py --store customers --from customers.parquet --key id --timestamp updated_at \\
            --out /data/shop-2026-11-21
        pykstreams run shop.py --bootstrap /data/shop-2026-11-21
    """
    from pykstreams.dsl.script import load_script

    script = load_script(topology)
    options = {"application.id": application_id, "bootstrap.servers": bootstrap_servers}
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options)
    need_application_id(config)
    tables = {} if stores_file is None else _tables(stores_file)
    if store is not None:
        given = {name: value for name, value in said.items() if value is not None}
        tables[store] = {**given, "from": source, "value": _value(values)}
    if not tables:
        raise click.UsageError("no store is named; give --store NAME --from PATH --key COLUMN, or --stores FILE")
    specs = [_spec(name, table) for name, table in tables.items()]
    bootstrap = _job()
    report = bootstrap(
        topology,
        specs,
        out=out,
        engine=engine,
        changelog=changelog,
        source_offsets=_offsets(source_offsets),
        config=config,
        partitions=partitions,
        processes=processes,
        progress=True,
    )
    for name, made in report.stores.items():
        refused = ", ".join(f"{count} {kind}" for kind, count in sorted(made.refused.items()))
        click.echo(f"{name}: {made.rows} rows{f', refused: {refused}' if refused else ''}")
        for path in made.rejects:
            click.echo(f"  refused rows are in {out}/{path}")
    click.echo(f"bootstrap {report.manifest.id} is in {out}")


def _job() -> Any:
    try:
        from pykstreams.spark import bootstrap
    except ImportError as error:
        raise click.UsageError(
            f"{error}; state is made in bulk by the extra 'spark': pip install 'pykstreams[spark]'"
        ) from error
    return bootstrap


def _tables(path: Path) -> dict[str, Mapping[str, Any]]:
    """The stores of a file."""
    text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error
    tables = found.get("stores")
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise click.UsageError(f"{path} names no stores; write a table [stores.NAME] for each, with from and key in it")
    return tables


def _spec(name: str, table: Mapping[str, Any]) -> StoreBootstrap:
    from pykstreams.spark import KafkaTopic, StoreBootstrap

    source = table.get("from")
    if not isinstance(source, str):
        raise click.UsageError(f"store {name} has no rows; name them by --from PATH (or from = in the file)")
    unknown = sorted(set(table) - {"from", *_OPTIONS})
    if unknown:
        raise click.UsageError(f"store {name}: {unknown} are unknown; there are {sorted(['from', *_OPTIONS])}")
    topic = source.removeprefix("topic:")
    arguments: dict[str, Any] = {_OPTIONS[key]: value for key, value in table.items() if key != "from"}
    try:
        return StoreBootstrap(name, source if topic == source else KafkaTopic(topic), **arguments)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _value(columns: tuple[str, ...]) -> Any:
    return None if not columns else columns[0] if len(columns) == 1 else columns


def _offsets(given: str) -> Any:
    if given in ("now", "none"):
        return "now" if given == "now" else None
    try:
        found = json.loads(Path(given).read_text(encoding="utf-8"))
        return {topic: {int(place): int(at) for place, at in places.items()} for topic, places in found.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise click.UsageError(
            f"--source-offsets {given} cannot be read ({error}); give now, none, or a JSON file such as "
            '{"orders": {"0": 1200, "1": 1187}}'
        ) from error
