"""``pykstreams bootstrap APP``: makes state from snapshots."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import click

from pykstreams.cli.jobs.job_options import bulk_jobs, job_options
from pykstreams.cli.options import (
    SETTINGS_HELP,
    combined_config,
    given_options,
    need_application_id,
    settings_options,
    topology_argument,
)


class _Kind(NamedTuple):
    """The values that a key in a file of stores takes: what they are called, and what tells them."""

    name: str
    takes: Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_TEXT: Final = _Kind("a text", _is_text)
_TEXTS: Final = _Kind("a list of texts", _are_texts)

_OPTIONS: Final[Mapping[str, _Kind]] = {
    "key": _TEXT,
    "value": _Kind("a text or a list of texts", lambda value: _is_text(value) or _are_texts(value)),
    "timestamp": _Kind("a text or a number of ms", lambda value: _is_text(value) or type(value) is int),
    "row": _TEXT,
    "window_start": _TEXT,
    "window_end": _TEXT,
    "content": _TEXT,
    "latest": _Kind("true or false", lambda value: isinstance(value, bool)),
    "on_error": _TEXT,
    "node": _TEXT,
}
"""Keys of a table in a file of stores, which are parameters of ``StoreBootstrap``."""

_OF_FILES: Final[Mapping[str, _Kind]] = {
    "format": _TEXT,
    "types": _Kind("a table of texts", lambda value: isinstance(value, dict) and all(map(_is_text, value.values()))),
    "nulls": _TEXTS,
    "delimiter": _TEXT,
}
"""Further ones, which are parameters of ``Files``."""


@click.command(epilog=SETTINGS_HELP)
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
@job_options
@settings_options
def build(
    topology: str,
    store: str | None,
    source: str | None,
    values: tuple[str, ...],
    stores_file: Path | None,
    out: str,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    **more: object,
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

    said: dict[str, object] = {name: more.pop(name) for name in _OPTIONS if name in more}
    script = load_script(topology)
    options = {"application.id": application_id, "bootstrap.servers": bootstrap_servers}
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options)
    need_application_id(config)
    tables = {} if stores_file is None else _tables(stores_file)
    if store is None and tables and (rows := given_options([*_OPTIONS, "source", "values"])):
        raise click.UsageError(f"{rows} about the rows of --store; write that into the tables of {stores_file}")
    if store is not None:
        if store in tables:
            raise click.UsageError(f"store {store} is named by --store and in {stores_file}; name it once")
        given = {name: value for name, value in said.items() if value is not None}
        tables[store] = {**given, "from": source, "value": _value(values)}
    if not tables:
        raise click.UsageError("no store is named; give --store NAME --from PATH --key COLUMN, or --stores FILE")
    jobs = bulk_jobs()
    specs = [_spec(jobs, name, table) for name, table in tables.items()]
    report = jobs.bootstrap(topology, specs, out=out, config=config, progress=True, **more)
    for name, made in report.stores.items():
        refused = ", ".join(f"{count} {kind}" for kind, count in sorted(made.refused.items()))
        click.echo(f"{name}: {made.rows} rows{f', refused: {refused}' if refused else ''}")
        for path in made.rejects:
            click.echo(f"  refused rows are in {out}/{path}")
    click.echo(f"bootstrap {report.manifest.id} is in {out}")


def _tables(path: Path) -> dict[str, Mapping[str, object]]:
    """The stores of a file."""
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error
    tables = found.get("stores") if isinstance(found, dict) else None
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise click.UsageError(f"{path} names no stores; write a table [stores.NAME] for each, with from and key in it")
    for name, table in tables.items():
        _check_kinds(path, name, table)
    return tables


def _check_kinds(path: Path, name: str, table: Mapping[str, object]) -> None:
    for key, kind in {**_OPTIONS, **_OF_FILES}.items():
        value = table.get(key)
        if value is not None and not kind.takes(value):
            raise click.UsageError(f"{path}: store {name} has {key} = {value!r}; expected {kind.name}")


def _spec(jobs: ModuleType, name: str, table: Mapping[str, object]) -> object:
    source = table.get("from")
    if not isinstance(source, str):
        raise click.UsageError(f"store {name} has no rows; name them by --from PATH (or from = in the file)")
    known = ("from", *_OPTIONS, *_OF_FILES)
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise click.UsageError(f"store {name}: {unknown} are unknown; there are {sorted(known)}")
    topic = source.removeprefix("topic:")
    of_files = {key: table[key] for key in _OF_FILES if key in table}
    if of_files and topic != source:
        raise click.UsageError(f"store {name}: {sorted(of_files)} say how files are read, and {source} is a topic")
    arguments = {key: table[key] for key in _OPTIONS if key in table}
    try:
        rows = jobs.Files(source, **of_files) if topic == source else jobs.KafkaTopic(topic)
        return jobs.StoreBootstrap(name, rows, **arguments)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _value(columns: tuple[str, ...]) -> object:
    return None if not columns else columns[0] if len(columns) == 1 else columns
