"""Makes docs/reference/api/ from what the public modules list in ``__all__``: ``python -m scripts.api_pages``.

Each page is a table of names, each with the first sentence of its docstring; the documentation site adds signatures and
docstrings below it (docs/site/hooks.py). A test compares the pages with what this script gives, so run it after every
change of a public name.
"""
# ruff: noqa: E501 - rows of a table are not broken

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference" / "api"
_FOLDERS = ("pykstreams", "processors", "serdes")


@dataclass(frozen=True, slots=True)
class ApiPage:
    """A page: some names of a public module, by where they are defined.

    :param homes: beginnings of modules; names that are defined there belong to this page. Without any, all names do.
    :param names: further names of this page, such as aliases, which know no module of their own.
    """

    file: str
    title: str
    module: str
    text: str
    homes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


PAGES = (
    ApiPage(
        "topologies",
        "Streams, tables and topologies",
        "pykstreams",
        "A script makes a `StreamsBuilder`, and calls the methods of the `KStream` and the `KTable` that it returns.",
        ("pykstreams.dsl.", "pykstreams.topology.", "pykstreams.core.names", "pykstreams.processors."),
    ),
    ApiPage(
        "windows",
        "Windows",
        "pykstreams",
        "Windows for `windowed_by` and for joins of streams.",
        ("pykstreams.core.windows",),
    ),
    ApiPage(
        "processors",
        "Records and processors",
        "pykstreams",
        "Code of your own in a topology: processors, records and their timestamps.",
        (
            "pykstreams.core.processor",
            "pykstreams.core.record",
            "pykstreams.core.timestamps",
            "pykstreams.core.value_transformer",
            "pykstreams.state.spec",
        ),
        ("FixedKeyProcessorSupplier", "ProcessorSupplier", "ValueTransformerWithKeySupplier"),
    ),
    ApiPage(
        "running",
        "Running an application",
        "pykstreams",
        "`KafkaStreams` runs a topology with a `StreamsConfig`. The command line does the same: see [the command line](../cli.md).",
        (
            "pykstreams.runtime.",
            "pykstreams.core.config",
            "pykstreams.core.errors",
            "pykstreams.core.handlers",
            "pykstreams.core.ids",
            "pykstreams.core.task_id",
        ),
        ("__version__",),
    ),
    ApiPage(
        "serdes-and-stores",
        "Factories of serdes and stores",
        "pykstreams",
        "All serdes are in [`pykstreams.serdes`](serdes.md), all of the stores in [`pykstreams.state`](state.md).",
        ("pykstreams.serdes.", "pykstreams.state.dsl_suppliers", "pykstreams.state.suppliers"),
    ),
    ApiPage("types", "Types", "pykstreams.types", "How to use them: [types in place of serdes](../../guides/types.md)."),
    ApiPage("serdes", "Serdes", "pykstreams.serdes", "Bytes and values, by example: [serdes](../serdes.md)."),
    ApiPage("state", "Stores", "pykstreams.state", "Stores of your own: [the guide](../../guides/own-stores.md)."),
    ApiPage("query", "Interactive queries", "pykstreams.query", "By example: [the guide](../../guides/interactive-queries.md)."),
    ApiPage("testing", "Testing", "pykstreams.testing", "What an application is tested with, without Kafka and with it."),
    ApiPage("errors", "Errors and their handlers", "pykstreams.errors", "What the command line makes of them: [exit codes](../cli.md#exit-codes)."),
    ApiPage("metrics", "Metrics", "pykstreams.metrics", "What is measured: [metrics](../metrics.md). How to use it: [the guide](../../guides/metrics.md)."),
    ApiPage("assignment", "Assignors", "pykstreams.assignment", "How to write one: [the guide](../../guides/own-assignor.md)."),
    ApiPage("http", "HTTP", "pykstreams.http", "Routes and answers: [the guide](../../guides/http.md)."),
    ApiPage("spark", "State in bulk", "pykstreams.spark", "How to use it: [bootstrap](../../guides/bootstrap-from-a-snapshot.md), [backfill](../../guides/backfill.md), [data frames](../../guides/state-as-data-frames.md)."),
)  # fmt: skip


def names_of(page: ApiPage) -> list[str]:
    """The public names that a page describes."""
    module = importlib.import_module(page.module)
    return [name for name in sorted(module.__all__) if _is_of(page, name, getattr(module, name))]


def text_of(page: ApiPage) -> str:
    """The text of a page."""
    return "\n".join(_lines(page)) + "\n"


def _is_of(page: ApiPage, name: str, found: object) -> bool:
    if not page.homes:
        return True
    home = str(getattr(found, "__module__", ""))
    return name in page.names or f"{home}.".startswith(tuple(page.homes)) or home.startswith(page.homes)


def _lines(page: ApiPage) -> Iterator[str]:
    module = importlib.import_module(page.module)
    yield "<!-- made by scripts/api_pages.py; do not edit -->\n"
    yield f"# {page.title}\n"
    yield f"`from {page.module} import ...`\n"
    yield f"{page.text}\n"
    yield "| name | meaning |"
    yield "|---|---|"
    for name in names_of(page):
        yield f"| `{name}` | {_sentence(name, getattr(module, name))} |"


def _sentence(name: str, found: object) -> str:
    """The first sentence of a docstring; of an alias or a constant what it stands for."""
    if name == "__version__":
        return "The version of pykstreams."
    text = (inspect.getdoc(found) or "") if _has_a_docstring_of_its_own(found) else ""
    if not text:
        return f"`{_aliases()[name]}`".replace("|", "\\|")
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z0-9)`])\. (?=[A-Z`(])", paragraph)[0].rstrip(".:") + "."
    return re.sub(r"``(.+?)``", r"`\1`", sentence).replace("|", "\\|")


def _has_a_docstring_of_its_own(found: object) -> bool:
    return inspect.isclass(found) or inspect.isroutine(found)


@cache
def _aliases() -> dict[str, str]:
    """What the aliases and constants of the package stand for, by name."""
    found: dict[str, str] = {}
    for path in (path for folder in _FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            if targets and isinstance(targets[0], ast.Name) and (value := getattr(node, "value", None)) is not None:
                found.setdefault(targets[0].id, " ".join(ast.unparse(value).strip("'").split()))
    return found


def write() -> None:
    """Writes all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (FOLDER / f"{page.file}.md").write_text(text_of(page), encoding="utf-8")


if __name__ == "__main__":
    write()
