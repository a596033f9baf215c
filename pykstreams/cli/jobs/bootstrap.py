"""``pykstreams bootstrap``: makes bootstraps, looks at them, checks them, and deletes what they do not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pykstreams.cli.jobs.bootstrap_build import build

if TYPE_CHECKING:
    from pykstreams.state.bulk.manifest import Manifest, StoreManifest

_anywhere = click.argument("folder", metavar="DIR")


class _BuildsByDefault(click.Group):
    """A topology in the place of a command is one to build state for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["build", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_BuildsByDefault)
def bootstrap() -> None:
    """State that is made in bulk, for workers to start from.

    A bootstrap is a folder with the sorted rows of stores, one set of files for each task, and a manifest that says
    what they are, and at which offsets the application goes on. Workers take it over with
    'pykstreams run ... --bootstrap DIR'.

    \b
        pykstreams bootstrap shop.py --store customers --from customers.parquet --key id --out /data/shop-2026-11-21
        pykstreams bootstrap verify /data/shop-2026-11-21
        pykstreams bootstrap inspect /data/shop-2026-11-21
    """


bootstrap.add_command(build)


@bootstrap.command()
@_anywhere
@click.option("--quick", is_flag=True, help="Only look for the files and their sizes; do not read them.")
def verify(folder: str, quick: bool) -> None:
    """Check that a bootstrap is whole: every file is there and has the hash that it was written with.

    Workers do the same before they take files over.
    """
    from pykstreams.core.errors import BootstrapError
    from pykstreams.state.bulk.manifest import read
    from pykstreams.state.bulk.manifest import verify as problems_of

    manifest = read(folder)
    problems = problems_of(folder, manifest, hashes=not quick)
    for problem in problems:
        click.echo(problem)
    if problems:
        raise BootstrapError(
            f"{len(problems)} of {len(list(manifest.files()))} files of bootstrap {manifest.id} are not as they were "
            "written; copy it again from where it is whole, or bootstrap again"
        )
    files = list(manifest.files())
    click.echo(f"bootstrap {manifest.id} is whole: {len(files)} files, {sum(file.size for file in files)} bytes")


@bootstrap.command()
@_anywhere
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="table: to read. json: the manifest, for programs.",
)
def inspect(folder: str, form: str) -> None:
    """Show what a bootstrap holds: stores, tasks, rows, and the offsets at which the application goes on."""
    from pykstreams.state.bulk.folder import MANIFEST, folder_at
    from pykstreams.state.bulk.manifest import read

    manifest = read(folder)
    if form == "json":
        with folder_at(folder).open(MANIFEST) as file:
            click.echo(file.read().decode())
    else:
        _show(manifest)


@bootstrap.command()
@_anywhere
@click.option("--dry-run", is_flag=True, help="Only name the files.")
def gc(folder: str, dry_run: bool) -> None:
    """Delete the files that a bootstrap does not need, which attempts of its job have left that did not count.

    In a folder without a bootstrap it deletes what a job has left that failed or was killed; while one runs it does
    nothing.

    What workers have taken over stays theirs: they have links to the files, or copies.
    """
    from pykstreams.state.bulk.folder import folder_at
    from pykstreams.state.bulk.job_lock import delete_work, held_to_clean
    from pykstreams.state.bulk.manifest import garbage

    files = folder_at(folder)
    with held_to_clean(files):
        found = garbage(files)
        size = sum(map(files.size, found))
        for name in found:
            click.echo(name)
            if not dry_run:
                files.delete(name)
        if files.local is not None and not dry_run:
            delete_work(files.local)
    click.echo(f"{len(found)} files, {size} bytes{' could be deleted' if dry_run else ' were deleted'}")


def _show(manifest: Manifest) -> None:
    from datetime import UTC, datetime

    made = datetime.fromtimestamp(manifest.created_ms / 1000, UTC)
    click.echo(f"bootstrap    {manifest.id}")
    click.echo(f"application  {manifest.application_id}")
    click.echo(f"made         {made:%Y-%m-%d %H:%M:%S} UTC")
    click.echo(f"changelog    {manifest.changelog}")
    for topic, offsets in sorted(manifest.source_offsets.items()):
        shown = ", ".join(f"{partition}: {offset}" for partition, offset in sorted(offsets.items()))
        click.echo(f"goes on at   {topic} {shown}")
    click.echo("")
    rows: list[tuple[object, ...]] = [("store", "kind", "layout", "task", "rows", "files", "bytes", "changelog offset")]
    for name, store in sorted(manifest.stores.items()):
        rows += _rows(name, store)
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(f"{value!s:{width}}" for value, width in zip(row, widths, strict=True)).rstrip())


def _rows(name: str, store: StoreManifest) -> list[tuple[object, ...]]:
    about = store.description
    return [
        (
            name,
            about.kind,
            about.layout,
            f"{about.subtopology}_{partition}",
            task.rows,
            len(task.files),
            sum(file.size for file in task.files),
            task.changelog_offset,
        )
        for partition, task in sorted(store.tasks.items())
    ]
