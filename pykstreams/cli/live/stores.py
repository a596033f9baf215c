"""``pykstreams state`` with ``--url``: the stores of an application that runs, asked over HTTP.

Answers come in pages; a failure between two of them leaves no file behind.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, cast
from urllib.parse import quote

import click

from pykstreams.cli.live.server import NothingThereError, Row, Server
from pykstreams.cli.row_texts import cell_text, time_text
from pykstreams.core.errors import ConfigError
from pykstreams.state.directory.durable_files import publish_file

F = TypeVar("F", bound=Callable[..., object])

PAGE_ROWS: Final = 500

_SCANS: Final = {"key-value": "range", "window": "windows", "session": "sessions"}

StoreLine: TypeAlias = tuple[str, str, list[int]]
"""The name of a store, its kind, and its partitions; -1 for a global store, which is whole."""


@dataclass(frozen=True, slots=True)
class LiveStores:
    """The stores of a running application.

    :param url: of any of its instances, ``http://shop-3:8080``.
    :param stale: as ``--http-stale`` of ``run``; ``None`` for what the instance says.
    """

    url: str
    token_file: str | None = None
    ca_file: str | None = None
    stale: str | None = None

    def rows_of_key(self, store: str, key: str, as_of: str | None) -> Iterator[Row]:
        """Reads what a store has for a key: its value, or its windows or sessions."""
        kind = self._readable_kind(store)
        if kind in ("window", "session"):
            if as_of is not None:
                raise ConfigError(f"store {store!r} is a {kind} store, which keeps no versions; leave --as-of out")
            yield from self._pages(store, _SCANS[kind], {"key": key}, None)
            return
        query = {"key": key} | ({} if as_of is None else {"as_of": as_of})
        with suppress(NothingThereError):
            yield self._get(f"/stores/{quote(store, safe='')}/keys", query, "value")

    def rows(self, store: str, limit: int | None) -> Iterator[Row]:
        """Reads the rows of a store, so many at most."""
        kind = self._readable_kind(store)
        if kind not in _SCANS:
            raise ConfigError(f"store {store!r} is a {kind} store, whose rows are read by key only; take 'state get'")
        return self._pages(store, _SCANS[kind], {}, limit)

    def stores(self) -> list[StoreLine]:
        """Reads the names of all stores, their kinds, and the partitions that instances have."""
        listed = cast("list[Row]", self._get("/stores", {}, "stores", stale=False)["stores"])
        return [(str(one["name"]), str(one["kind"]), self._partitions(one)) for one in listed]

    def _partitions(self, store: Row) -> list[int]:
        if store["global"]:
            return [-1]
        found = self._get(f"/stores/{quote(str(store['name']), safe='')}", {}, "partitions", stale=False)
        return [cast("int", one["partition"]) for one in cast("list[Row]", found["partitions"])]

    def _readable_kind(self, store: str) -> str:
        """The kind of a store that HTTP reads; ``ConfigError`` for one of another kind."""
        from pykstreams.state.store_kinds import StoreKind, buffer_refused

        kind = self.kind(store)
        if kind == StoreKind.BUFFER.value:
            raise ConfigError(buffer_refused(store))
        if kind == StoreKind.CUSTOM.value:
            raise ConfigError(f"store {store!r} is one of your own, which HTTP cannot read; read it where it is used")
        return kind

    def kind(self, store: str) -> str:
        """The kind of a store."""
        return str(self._get(f"/stores/{quote(store, safe='')}", {}, "kind", stale=False)["kind"])

    def _pages(self, store: str, way: str, query: Mapping[str, str], limit: int | None) -> Iterator[Row]:
        left, cursor = limit, ""
        while left is None or left > 0:
            asked = {**query, "limit": str(PAGE_ROWS if left is None else min(left, PAGE_ROWS))}
            if cursor:
                asked["cursor"] = cursor
            page = self._get(f"/stores/{quote(store, safe='')}/{way}", asked, "rows")
            rows = cast("list[Row]", page["rows"])
            yield from rows
            left = None if left is None else left - len(rows)
            if page["next"] is None:
                return
            cursor = str(page["next"])

    def _get(self, path: str, query: Mapping[str, str], field: str, *, stale: bool = True) -> Row:
        asked = {**query, "stale": self.stale} if stale and self.stale is not None else query
        return Server(self.url, self.token_file, self.ca_file).get(path, asked, field)


def live_options(command: F) -> F:
    """Adds the options of a command that can ask a running application."""
    for option in (
        click.option("--stale", metavar="refuse|allow|MS", help="With --url: how old answers of standby tasks may be."),
        click.option("--tls-ca", metavar="FILE", help="With --url: what certificates are checked with."),
        click.option("--token-file", metavar="FILE", help="With --url: a file with the token of the application."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("store")
@click.option("--url", metavar="http://HOST:PORT", required=True, help="An instance of the running application.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="How many rows at most."
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="As of 'get'."
)
@live_options
def show(
    store: str, url: str, limit: int, form: str, token_file: str | None, tls_ca: str | None, stale: str | None
) -> None:
    """Show the first rows of a store of an application that runs with --http, from all of its instances.

    \b
        pykstreams state show counts --limit 20 --url http://localhost:8080
    """
    told(LiveStores(url, token_file, tls_ca, stale).rows(store, limit), form)


def told(rows: Iterator[Row], form: str, *, with_keys: bool = True) -> int:
    """Prints rows; returns how many there were."""
    found = list(rows)
    if form == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for row in found:
            click.echo(_as_text(row, with_keys))
    return len(found)


def _as_text(row: Row, with_key: bool) -> str:
    parts = [cell_text(row["key"])] if with_key else []
    if isinstance(window := row.get("window"), dict):
        parts.append(f"{time_text(window['start'])} to {time_text(window['end'])}")
    parts.append(cell_text(row["value"]))
    if isinstance(time := row.get("timestamp"), int):
        parts.append(f"(of {time_text(time)})")
    source = row.get("from")
    if isinstance(source, dict) and source["role"] not in ("active", "global"):
        age = source["stale_ms"]
        parts.append(f"({source['role']}, {'of unknown age' if age is None else f'{age} ms old'})")
    return "  ".join(parts)


def export_live(rows: Iterator[Row], to: str) -> int:
    """Writes rows to ``csv:PATH`` or ``json:PATH``, which must be new, and is whole; returns how many there were."""
    form, _, name = to.partition(":")
    if form not in ("csv", "json") or not name:
        raise click.BadParameter(
            f"{to!r} cannot be written from a running application; write csv:PATH or json:PATH", param_hint="--to"
        )
    path = Path(name)
    if path.exists():
        raise click.BadParameter(f"{name!r} is there already; name a new file", param_hint="--to")
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        file = unfinished.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise click.BadParameter(f"{name!r} cannot be made: {error}; name a new file", param_hint="--to") from error
    count = 0
    try:
        with file:
            write = _csv_writer(csv.writer(file).writerow) if form == "csv" else _json_writer(file.write)
            for row in rows:
                write(row)
                count += 1
        publish_file(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _json_writer(write: Callable[[str], object]) -> Callable[[Row], object]:
    return lambda row: write(json.dumps(row, ensure_ascii=False) + "\n")


def _csv_writer(write: Callable[[list[object]], object]) -> Callable[[Row], object]:
    columns = ["key", "window_start", "window_end", "value", "timestamp"]
    write(list(columns))

    def row_written(row: Row) -> None:
        window = row.get("window")
        ends = [window["start"], window["end"]] if isinstance(window, dict) else ["", ""]
        time = row.get("timestamp")
        write([cell_text(row["key"]), *ends, cell_text(row["value"]), "" if time is None else time])

    return row_written
