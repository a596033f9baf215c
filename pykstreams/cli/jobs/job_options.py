"""The options that commands share which make state in bulk: how the job runs, and what it asks of the brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])


def job_options(command: F) -> F:
    """Adds --engine, --processes, --module, --changelog, --source-offsets, --partitions and --bootstrap-servers."""
    for option in (
        click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to ask first (bootstrap.servers)."),
        click.option(
            "--partitions",
            metavar="N|TOPIC=N",
            multiple=True,
            callback=_partitions,
            help="The partition counts of the topics, where no brokers are asked.",
        ),
        click.option(
            "--source-offsets",
            metavar="now|none|FILE",
            default="now",
            show_default=True,
            callback=_offsets,
            help="Where the application goes on: where its input topics end before anything is read, where a JSON file "
            "says ({topic: {partition: offset}}), or where workers would begin. A topic that is a source is read up "
            "to there.",
        ),
        click.option(
            "--changelog",
            type=click.Choice(["write", "base-only"]),
            default="write",
            show_default=True,
            help="write: also write the changelog topics. base-only: workers need the folder for as long as the stores "
            "live.",
        ),
        click.option(
            "--module",
            "modules",
            metavar="PATH",
            multiple=True,
            help="For --engine spark on a cluster: code that the script imports, to be sent along. Can be repeated.",
        ),
        click.option(
            "--processes", type=click.IntRange(min=1), metavar="N", help="For --engine local. Default: all cores."
        ),
        click.option(
            "--engine",
            type=click.Choice(["spark", "local"]),
            default="spark",
            show_default=True,
            help="spark: a local Spark session, or the cluster that spark-submit runs this on. local: processes of "
            "this machine, without Spark and Java.",
        ),
    ):
        command = option(command)
    return command


def bulk_jobs() -> ModuleType:
    """The package that the jobs are in; a usage error says which extra brings what it needs."""
    try:
        import pykstreams.spark as found
    except ImportError as error:
        raise click.UsageError(
            f"{error}; state is made in bulk by the extra 'spark': pip install 'pykstreams[spark]'"
        ) from error
    return found


def _partitions(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> int | dict[str, int] | None:
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


def _offsets(
    context: click.Context, option: click.Parameter, given: str
) -> str | Mapping[str, Mapping[int, int]] | None:
    if given == "now":
        return given
    if given == "none":
        return None
    try:
        return _read_offsets(Path(given))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise click.UsageError(
            f"--source-offsets {given!r} cannot be read: {error}; expected now, none, or a JSON file such as "
            '{"orders": {"0": 1200, "1": 1187}}'
        ) from error


def _read_offsets(path: Path) -> Mapping[str, Mapping[int, int]]:
    found = json.loads(path.read_text(encoding="utf-8"))
    return {topic: {int(place): int(offset) for place, offset in places.items()} for topic, places in found.items()}
