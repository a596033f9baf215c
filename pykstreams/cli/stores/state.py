"""``pykstreams state``: looks into the stores of a stopped application, with the serdes of its topology.

Nothing is changed. No worker can take the folder of a task while it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from pykstreams.cli.exit_codes import ExitCode
from pykstreams.cli.live.stores import LiveStores, StoreLine, export_live, live_options, show, told
from pykstreams.cli.options import (
    SETTINGS_HELP,
    combined_config,
    format_option,
    given_options,
    need_application_id,
    settings_options,
    state_dir_option,
)
from pykstreams.core.errors import ConfigError
from pykstreams.core.shown_values import with_noun

if TYPE_CHECKING:
    from pykstreams.cli.stores.folder_rows import ShownRow
    from pykstreams.core.config import StreamsConfig
    from pykstreams.core.ids import TaskId
    from pykstreams.state.bulk.places import StoreFolder
    from pykstreams.state.interfaces.store import TaskStore
    from pykstreams.state.spec import StoreBuilder
    from pykstreams.topology.plan import TopologyPlan

F = TypeVar("F", bound=Callable[..., object])

_OF_FOLDERS: Final = ("config_file", "pairs", "application_id", "state_dir")
_OF_URLS: Final = ("token_file", "tls_ca", "stale")


@click.group()
def state() -> None:
    """Look into the stores of an application: of a stopped one in its folders, of a running one over HTTP."""


state.add_command(show)


def _options(command: F) -> F:
    return settings_options(state_dir_option(format_option(command)))


_url = click.option(
    "--url",
    metavar="http://HOST:PORT",
    help="Ask an application that runs with --http, at any instance; leave TOPOLOGY out then.",
)


@state.command("list", epilog=SETTINGS_HELP)
@click.argument("words", nargs=-1, metavar="[TOPOLOGY]")
@_url
@live_options
@_options
def list_stores(
    words: tuple[str, ...],
    url: str | None,
    token_file: str | None,
    tls_ca: str | None,
    stale: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    state_dir: str | None,
    form: str,
) -> None:
    """Show the stores of a topology, and of which partitions there is state here, or with --url in the group.

    \b
        pykstreams state list word_count.py --state-dir /var/lib/word-count
        pykstreams state list --url http://localhost:8080
    """
    if url is not None:
        _refuse_for_url(*_OF_FOLDERS)
        if stale is not None:
            raise click.UsageError("--stale is for reading rows, which 'list' does not; leave it out")
        _words(words, "")
        _list(LiveStores(url, token_file, tls_ca).stores(), form)
        return
    _refuse_without_url()
    (topology,) = _words(words, "TOPOLOGY")
    plan, config = _planned(topology, config_file, pairs, application_id, state_dir)
    if not Path(config.state_dir).is_dir():
        raise ConfigError(
            f"there is no folder {str(config.state_dir)!r}; name the folder of the worker with --state-dir"
        )
    rows: list[StoreLine] = []
    in_memory: set[str] = set()
    for name, builder in _builders(plan).items():
        here = [place.task_id.partition for place in _places(plan, config, name)]
        rows.append((name, _kind(builder), here))
        if not builder.build().persistent:
            in_memory.add(name)
    _list(rows, form, in_memory)
    if form == "json":
        return
    if not all(here or name in in_memory for name, _, here in rows):
        from pykstreams.state.directory.state_directory import application_folder

        looked = application_folder(config.state_dir, config.application_id)
        click.echo(f"looked in {str(looked)!r}; name another folder with --state-dir", err=True)


@state.command(epilog=SETTINGS_HELP)
@click.argument("words", nargs=-1, required=True, metavar="[TOPOLOGY] STORE KEY")
@_url
@live_options
@click.option(
    "--as-of",
    metavar="TIME",
    help="What a versioned store had then: 2026-01-01T00:00Z, or ms since the epoch. Default: the newest version.",
)
@_options
def get(
    words: tuple[str, ...],
    url: str | None,
    token_file: str | None,
    tls_ca: str | None,
    stale: str | None,
    as_of: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    state_dir: str | None,
    form: str,
) -> None:
    """Show what a store has for a key: its value, or its windows or sessions. Without --url it must not run.

    The key is written as 'show' prints it, whichever the key serde of the store takes: text, time, UUID, number, true
    or false as it is, bytes in base64, anything else in JSON. What the application has not committed is not there.
    The exit code is 6 where the store has nothing for the key, and 7 where it has nothing on disk and its folders were
    not closed in good order, as after kill -9: the changelog may have more.

    \b
        pykstreams state get word_count.py counts hello
        pykstreams state get prices.py prices gold --as-of 2026-01-01T00:00Z
        pykstreams state get counts hello --url http://localhost:8080
    """
    if url is not None:
        _refuse_for_url(*_OF_FOLDERS)
        store, key = _words(words, "STORE KEY")
        rows = LiveStores(url, token_file, tls_ca, stale).rows_of_key(store, key, as_of)
        if not told(rows, form, with_keys=False):
            click.echo(f"store {store!r} has nothing for {key!r}", err=True)
            click.get_current_context().exit(ExitCode.NOTHING_THERE)
        return
    _refuse_without_url()
    topology, store, key = _words(words, "TOPOLOGY STORE KEY")
    from pykstreams.cli.stores.folder_rows import AskedKey
    from pykstreams.state.bulk.places import held, was_closed

    plan, config = _planned(topology, config_file, pairs, application_id, state_dir)
    builder = _builder(plan, store)
    time = None if as_of is None else _time_of(as_of, store, builder)
    places = _places_with_state(plan, config, store, builder)
    topic = plan.serde_topic(store)
    wanted = key_of(builder, config, topic, key)
    asked = AskedKey(builder, config, topic, wanted, time)
    found: list[tuple[StoreFolder, ShownRow]] = []
    for place in places:
        with held(place):
            found += ((place, row) for row in asked.rows(place))
    unsure = _unsure(store, [place.task_id for place in places if not was_closed(place)])
    if not found:
        click.echo(_nothing_found(store, wanted, len(places), is_sure=unsure is None), err=True)
    if unsure is not None:
        click.echo(unsure, err=True)
    _show_rows(found, form)
    if not found:
        click.get_current_context().exit(ExitCode.NOTHING_THERE if unsure is None else ExitCode.NOT_KNOWN)


@state.command(epilog=SETTINGS_HELP)
@click.argument("words", nargs=-1, required=True, metavar="[TOPOLOGY] STORE")
@_url
@live_options
@click.option(
    "--to",
    metavar="parquet:PATH|csv:PATH|json:PATH",
    required=True,
    help="The file to write; a new one. json: one object a line.",
)
@click.option(
    "--from",
    "source",
    metavar="PATH|topic:NAME",
    help="A bootstrap, a copy of a state directory or of a task's folder, or a changelog topic. Default: the state "
    "directory.",
)
@click.option("--as-of", metavar="TIME", help="Only what a versioned store had then, one row a key.")
@click.option("--raw", is_flag=True, help="Keys and values as the bytes that are stored.")
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to ask first, for a topic.")
@state_dir_option
@settings_options
def export(
    words: tuple[str, ...],
    url: str | None,
    token_file: str | None,
    tls_ca: str | None,
    stale: str | None,
    to: str,
    source: str | None,
    as_of: str | None,
    raw: bool,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    state_dir: str | None,
) -> None:
    """Write all rows of a store to a file, with the columns that a Spark data frame of it has.

    It needs pyarrow, but for a running application (--url), whose rows are written as CSV or JSON as they are answered.

    \b
        pykstreams state export word_count.py counts --to parquet:counts.parquet
        pykstreams state export prices.py prices --as-of 2026-01-01T00:00Z --to csv:prices.csv
        pykstreams state export counts --url http://localhost:8080 --to json:counts.json
    """
    if url is not None:
        _refuse_for_url(*_OF_FOLDERS, "bootstrap_servers", "as_of", "raw", "source")
        (store,) = _words(words, "STORE")
        count = export_live(LiveStores(url, token_file, tls_ca, stale).rows(store, None), to)
        click.echo(f"{store}: {count} rows are in {to.partition(':')[2]}")
        return
    _refuse_without_url()
    topology, store = _words(words, "TOPOLOGY STORE")
    from pykstreams.dsl.script import load_script

    try:
        from pykstreams.spark import export_state
    except ImportError as error:
        raise click.UsageError(
            f"{error}; state is exported by the extra 'spark': pip install 'pykstreams[spark]'"
        ) from error
    script = load_script(topology)
    options: Mapping[str, str | None] = {
        "application.id": application_id,
        "state.dir": state_dir,
        "bootstrap.servers": bootstrap_servers,
    }
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options)
    need_application_id(config)
    topic = source.removeprefix("topic:") if source is not None and source.startswith("topic:") else None
    report = export_state(
        topology,
        store,
        to,
        path=None if topic is not None else source,
        topic=topic,
        as_of=None if as_of is None else moment(as_of),
        raw=raw,
        config=config,
    )
    click.echo(f"{store}: {report.rows} rows of {report.tasks} tasks are in {report.path}")
    if unsure := _unsure(store, report.not_closed):
        click.echo(unsure, err=True)


def _builder(plan: TopologyPlan, store: str) -> StoreBuilder[TaskStore]:
    """The builder of a store whose rows have keys; an error, with the stores that there are, without such."""
    from pykstreams.state.store_kinds import StoreKind, buffer_refused, kind_of

    builder = _builders(plan).get(store)
    if builder is None:
        known = ", ".join(_builders(plan)) or "none"
        raise click.BadParameter(f"the topology has no store {store!r}; its stores are: {known}", param_hint="STORE")
    if kind_of(builder.build()) is StoreKind.BUFFER:
        raise ConfigError(buffer_refused(store))
    return builder


def _time_of(as_of: str, store: str, builder: StoreBuilder[TaskStore]) -> int:
    """The time as of which a store is read; a usage error for one that is not versioned."""
    from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore

    time = moment(as_of)
    if not isinstance(builder.build(), VersionedKeyValueStore):
        raise click.BadParameter(
            f"store {store!r} keeps no history, it is a {_kind(builder)} store; leave --as-of out", param_hint="--as-of"
        )
    return time


def _places_with_state(
    plan: TopologyPlan, config: StreamsConfig, store: str, builder: StoreBuilder[TaskStore]
) -> list[StoreFolder]:
    """The folders in which a store lies; ``ConfigError`` where there are none."""
    from pykstreams.state.directory.state_directory import application_folder

    if not builder.supplier.get().persistent:
        raise ConfigError(f"store {store!r} is kept in memory, so nothing of it is on disk; look into its changelog")
    places = _places(plan, config, store)
    if not places:
        raise ConfigError(
            f"there is no state of store {store!r} in "
            f"{str(application_folder(config.state_dir, config.application_id))!r}; name the folder of the worker with "
            "--state-dir"
        )
    return places


def _nothing_found(store: str, key: object, partitions: int, *, is_sure: bool) -> str:
    parts = with_noun(partitions, "partition")
    if is_sure:
        return f"store {store!r} has nothing for {key!r} in its {parts} here"
    have = f"the {parts} of store {store!r} here {'has' if partitions == 1 else 'have'}"
    return f"not known: {have} nothing for {key!r}, and may not have all of it"


def _show_rows(found: Collection[tuple[StoreFolder, ShownRow]], form: str) -> None:
    """Prints the rows of a key, each with where it was found."""
    from pykstreams.cli.stores.folder_rows import source_of, text_of

    if form == "json":
        shown = [row if "window" in row else row | {"from": source_of(place)} for place, row in found]
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    for place, row in found:
        click.echo(text_of(row, place))


def _list(rows: Collection[StoreLine], form: str, in_memory: Collection[str] = ()) -> None:
    """Prints stores with their kinds and partitions; -1 stands for a store that is whole.

    :param in_memory: stores of which nothing is on disk.
    """
    if form == "json":
        found = [{"store": name, "kind": kind, "partitions": here} for name, kind, here in rows]
        click.echo(json.dumps(found, indent=2))
        return
    for name, kind, here in rows:
        missing = "in memory, and not on disk" if name in in_memory else "not here"
        told = "whole" if here == [-1] else f"partitions {', '.join(map(str, here))}" if here else missing
        click.echo(f"{name}  {kind}  {told}")


def _refuse_for_url(*names: str) -> None:
    """Raises a usage error where an option was given that only reading folders or topics heeds."""
    if given := given_options(names):
        raise click.UsageError(f"{given} for reading folders or topics, which --url does not; leave one of them out")


def _refuse_without_url() -> None:
    """Raises a usage error where an option was given that only asking a running application heeds."""
    if given := given_options(_OF_URLS):
        raise click.UsageError(f"{given} for asking a running application; name it with --url http://HOST:PORT")


def _words(words: tuple[str, ...], names: str) -> tuple[str, ...]:
    """The arguments of a command whose first one depends on --url."""
    if len(words) != len(names.split()):
        wanted = f"{names} {'are' if ' ' in names else 'is'}" if names else "none is"
        raise click.UsageError(f"{len(words)} arguments were given, and {wanted} needed")
    return words


def key_of(builder: StoreBuilder[TaskStore], config: StreamsConfig, topic: str, text: str) -> object:
    """Returns the key that is meant by a text, by the key serde of the store; a usage error for what is none.

    :param topic: the topic that the serde gets.
    """
    from pykstreams.serdes.defaults import or_default
    from pykstreams.serdes.key_texts import key_of_text

    serde = or_default(builder.key_serde, lambda: config.default_key_serde)
    try:
        return key_of_text(serde, topic, text, store=builder.name)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="KEY") from error


def moment(text: str, option: str = "--as-of") -> int:
    """Reads a time that an option gives.

    >>> moment("2026-01-01T00:00Z"), moment("5")
    (1767225600000, 5)
    """
    from pykstreams.core.types import END_OF_TIME, timestamp_ms

    try:
        if text.isdecimal():
            return min(int(text), END_OF_TIME)
        return timestamp_ms(datetime.fromisoformat(text), option)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is no time ({error}); write 2026-01-01T00:00Z, or ms since the epoch", param_hint=option
        ) from error


def _planned(
    topology: str,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    state_dir: str | None,
) -> tuple[TopologyPlan, StreamsConfig]:
    from pykstreams.dsl.script import load_script

    script = load_script(topology)
    options: Mapping[str, str | None] = {"application.id": application_id, "state.dir": state_dir}
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options)
    need_application_id(config)
    return script.build(config).plan(config), config


def _builders(plan: TopologyPlan) -> dict[str, StoreBuilder[TaskStore]]:
    """The builders of all stores, by name, those of tasks first."""
    found = {name: builder for part in plan.subtopologies for name, builder in part.stores.items()}
    found.update({one.store.name: one.store for one in plan.global_stores})
    return found


def _kind(builder: StoreBuilder[TaskStore]) -> str:
    """The users' word for the kind of a store."""
    from pykstreams.state.store_kinds import kind_of

    return kind_of(builder.build()).value


def _places(plan: TopologyPlan, config: StreamsConfig, name: str) -> list[StoreFolder]:
    """The folders in which a store lies, by partition; of a global store, which each worker has whole, one."""
    from pykstreams.state.bulk.places import places_of
    from pykstreams.state.directory.state_directory import application_folder

    parts = [part.id for part in plan.subtopologies if name in part.stores]
    return places_of(application_folder(config.state_dir, config.application_id), name, parts)


def _unsure(store: str, not_closed: Collection[TaskId]) -> str | None:
    """The warning about the state of tasks that may lack what was written last; ``None`` without such."""
    from pykstreams.state.bulk.places import NO_TASK

    if not not_closed:
        return None
    numbers = [str(task_id.partition) for task_id in not_closed if task_id != NO_TASK]
    where = (
        f"partition{'s' * (len(numbers) > 1)} {', '.join(numbers)} of store {store!r}"
        if numbers
        else f"store {store!r}"
    )
    topic = "changelog" if numbers else "topic of the store"
    return (
        f"{where}: not known to have been closed in good order (after a crash or kill -9, in a copy, or by an older "
        "release), so that what was written since the last flush, possibly everything since the start, may be in the "
        f"{topic} only; start the application, which restores it, or ask it while it runs, with --url"
    )
