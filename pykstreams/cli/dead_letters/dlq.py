"""``pykstreams dlq``: what lies in topics of dead letters, and how it gets another chance."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import click

from pykstreams.cli.dead_letters.letter_texts import as_data, as_text, shown_by, time_or_unknown
from pykstreams.cli.options import combined_config, format_option
from pykstreams.cli.stores.state import moment

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.runtime.dead_letters.letters import DeadLetter, Selection
    from pykstreams.runtime.dead_letters.progress import Replayed
    from pykstreams.runtime.dead_letters.replay import Letters

F = TypeVar("F", bound=Callable[..., object])

_EPILOG = """Settings are those of clients, for instance --set security.protocol=SSL. From strong to weak:
--bootstrap-servers, --set key=value, variables like PYKSTREAMS_BOOTSTRAP_SERVERS, and --config FILE."""

_ENDS = {"hour": ":", "day": "T"}
"""Where the text of a time is cut; one without a date is left whole."""


@click.group()
def dlq() -> None:
    """List, show and replay dead letters."""


class CommonOptions(TypedDict):
    """The options that all commands have."""

    bootstrap_servers: str | None
    config_file: Path | None
    pairs: tuple[str, ...]
    sources: tuple[str, ...]
    exceptions: tuple[str, ...]
    since: str | None
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """The meaning of these options."""

    config: StreamsConfig
    selection: Selection


def _common(command: F) -> F:
    for option in (
        click.option(
            "--offset",
            "places",
            metavar="PARTITION:OFFSET",
            multiple=True,
            help="Only this letter, by its place in the topic of dead letters. Can be repeated.",
        ),
        click.option(
            "--since",
            metavar="TIME",
            help="Only records of this time or later: 2026-01-01T00:00Z, or ms since the epoch.",
        ),
        click.option(
            "--exception",
            "exceptions",
            metavar="CLASS",
            multiple=True,
            help="Only letters of this class of errors, with its module or without. Can be repeated.",
        ),
        click.option(
            "--topic",
            "sources",
            metavar="TOPIC",
            multiple=True,
            help="Only records that were read from this topic. Can be repeated.",
        ),
        click.option(
            "--set", "pairs", metavar="KEY=VALUE", multiple=True, help="One setting of the clients. Can be repeated."
        ),
        click.option(
            "--config",
            "config_file",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Settings from a .properties or .toml file.",
        ),
        click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to ask first."),
    ):
        command = option(command)
    return command


@dlq.command("list", epilog=_EPILOG)
@click.argument("letters", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--by", type=click.Choice(["hour", "day"]), help="Count those of each hour or day on their own.")
@click.option("--group", metavar="ID", help="The group of replays that are counted. Default: TOPIC-replay.")
@format_option
@_common
def list_letters(
    letters: tuple[str, ...], by: str | None, group: str | None, form: str, **options: Unpack[CommonOptions]
) -> None:
    """Count the letters of topics by the class of their error and the topic that they were read from.

    How many of them were replayed is counted, too; '?' (in JSON null) where the group cannot be read.

    \b
        pykstreams dlq list orders-dead --bootstrap-servers localhost:9092
        pykstreams dlq list orders-dead bills-dead --by day --since 2026-01-01T00:00Z
    """
    from pykstreams.runtime.dead_letters.replay import Letters

    given = _given("pykstreams-dlq-list", **options)
    rows: list[dict[str, object]] = []
    for topic in letters:
        counts: Counter[tuple[str, str, str]] = Counter()
        sent: Counter[tuple[str, str, str]] = Counter()
        times: dict[tuple[str, str, str], tuple[int, int]] = {}
        there = Letters.of(given.config, topic)
        replayed = _replayed(there, f"{topic}-replay" if group is None else group)
        for letter in filter(given.selection.has, there):
            when = "" if by is None else time_or_unknown(letter.timestamp).partition(_ENDS[by])[0]
            kind = letter.exception or "unknown", letter.source_topic or "unknown", when
            counts[kind] += 1
            sent[kind] += replayed is not None and replayed[letter.partition].has(letter.offset)
            first, last = times.get(kind, (letter.timestamp, letter.timestamp))
            times[kind] = min(first, letter.timestamp), max(last, letter.timestamp)
        for kind in sorted(counts):
            exception, source, when = kind
            row = {"topic": topic, "exception": exception, "source": source, "letters": counts[kind]}
            row["replayed"] = None if replayed is None else sent[kind]
            span = {"first": time_or_unknown(times[kind][0]), "last": time_or_unknown(times[kind][1])}
            rows.append(row | ({} if by is None else {by: when}) | span)
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo(f"{', '.join(letters)}: no such letters", err=True)
    else:
        _print_table(rows)


@dlq.command(epilog=_EPILOG)
@click.argument("letters", metavar="TOPIC")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=10, show_default=True, help="How many at most."
)
@click.option("--key-serde", metavar="SERDE", help="How keys are read: string, long, ..., or module:Class.")
@click.option("--value-serde", metavar="SERDE", help="The same of values. Default: text, or else hexadecimal.")
@format_option
@_common
def show(
    letters: str,
    limit: int,
    key_serde: str | None,
    value_serde: str | None,
    form: str,
    **options: Unpack[CommonOptions],
) -> None:
    """Show letters: key, value, headers, and why they are here. In the order of partitions and offsets.

    \b
        pykstreams dlq show orders-dead --limit 1
        pykstreams dlq show orders-dead --offset 0:17 --key-serde long --value-serde shop.serdes:OrderSerde
    """
    from itertools import islice

    from pykstreams.runtime.dead_letters.replay import Letters

    key, value = (shown_by(key_serde, letters, "--key-serde"), shown_by(value_serde, letters, "--value-serde"))
    given = _given("pykstreams-dlq-show", **options)
    found = [*islice(filter(given.selection.has, Letters.of(given.config, letters)), limit)]
    if form == "json":
        click.echo(json.dumps([as_data(letter, key, value) for letter in found], indent=2))
    elif not found:
        click.echo(f"{letters}: no such letters", err=True)
    else:
        click.echo("\n\n".join(as_text(letter, key, value) for letter in found))


@dlq.command(epilog=_EPILOG)
@click.argument("letters", metavar="TOPIC")
@click.option("--to", metavar="TOPIC", help="Where to send them. Default: where each was read.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent, which is the default.")
@click.option("--execute", is_flag=True, help="Send it.")
@click.option("--group", metavar="ID", help="The group that knows what was replayed. Default: TOPIC-replay.")
@_common
def replay(
    letters: str,
    to: str | None,
    dry_run: bool,
    execute: bool,
    group: str | None,
    **options: Unpack[CommonOptions],
) -> None:
    """Send letters to the topics that their records were read from, without the headers of their errors.

    Key, value, timestamp and the record's own headers stay; one more, __streams.replays, counts. What was sent is not
    sent again, however often the command is called, and whatever interrupts it; another group sends it once more.

    \b
        pykstreams dlq replay orders-dead --exception TimeoutError
        pykstreams dlq replay orders-dead --exception TimeoutError --execute
    """
    from pykstreams.runtime.dead_letters.replay import Letters, Replay
    from pykstreams.runtime.dead_letters.replay_group import check_unused, opened_group

    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute contradict each other; give one of them")
    if to == letters:
        raise click.BadParameter(
            f"{to!r} is the topic of the letters themselves, which would lose their errors; name another one, or leave "
            "it out: then each goes where it was read",
            param_hint="--to",
        )
    group_id = f"{letters}-replay" if group is None else group
    given = _given(group_id, **options)
    counts: Counter[tuple[str, str | None]] = Counter()

    def tell(letter: DeadLetter, target: str | None) -> None:
        counts[letter.exception or "unknown", target] += 1

    there = Letters.of(given.config, letters)
    run = Replay(there, given.selection, to, tell)
    if not there.embedded:
        with opened_group(given.config, embedded=False) as remembering:
            check_unused(group_id, remembering)
    try:
        if execute:
            run.send()
        else:
            run.look()
    finally:
        for (exception, target), count in sorted(counts.items(), key=str):
            _tell(exception, target, count, dry_run=not execute)
    if not counts:
        click.echo(f"{letters}: nothing to replay", err=True)
    elif not execute and any(target is not None for _, target in counts):
        click.echo("nothing was sent; --execute sends", err=True)


def _replayed(letters: Letters, group_id: str) -> Mapping[int, Replayed] | None:
    """The letters that a group has replayed, by partition; ``None``, and a warning, where it cannot be read."""
    from pykstreams.core.errors import StreamsError
    from pykstreams.runtime.dead_letters import replay_group

    try:
        config = letters.config.replace({"application.id": group_id})
        with replay_group.opened_group(config, embedded=letters.embedded) as group:
            found = replay_group.replayed_letters(group, letters.begins.keys())
    except StreamsError as error:
        click.echo(f"{letters.topic}: how many letters were replayed is not known: {error}", err=True)
        return None
    return {place.partition: replayed for place, replayed in found.items()}


def _tell(exception: str, target: str | None, count: int, *, dry_run: bool) -> None:
    letters = f"{count} of {exception}"
    if target is None:
        click.echo(f"{letters}: not sent, they do not say where they were read; name a topic with --to TOPIC")
    else:
        click.echo(f"{letters}: {'would be ' if dry_run else ''}sent to {target}")


def _given(group: str, **common: Unpack[CommonOptions]) -> Given:
    from pykstreams.runtime.dead_letters.letters import Selection

    options: Mapping[str, str | None] = {"bootstrap.servers": common["bootstrap_servers"], "application.id": group}
    config = combined_config(None, config_file=common["config_file"], pairs=common["pairs"], options=options)
    if "bootstrap.servers" not in config:
        raise click.UsageError(
            "no brokers are named; give --bootstrap-servers HOST:PORT, or bootstrap.servers in a file (--config)"
        )
    since = None if common["since"] is None else moment(common["since"], "--since")
    places = [_place(text) for text in common["places"]]
    return Given(config, Selection(common["sources"], common["exceptions"], since, places))


def _place(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition(":")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise click.BadParameter(f"{text!r} is no place of a letter; write 0:17", param_hint="--offset")
    return int(partition), int(offset)


def _print_table(rows: list[dict[str, object]]) -> None:
    lines = [tuple(rows[0]), *(tuple("?" if cell is None else str(cell) for cell in row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
