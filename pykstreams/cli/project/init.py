"""``pykstreams init``: writes a project that runs and passes its test at once."""

from __future__ import annotations

import keyword
import re
import sys
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

import click

from pykstreams.core.errors import ConfigError
from pykstreams.core.names import valid_name

FILES: Final = {
    "topology.py": "{module}.py",
    "test_topology.py": "test_{module}.py",
    "settings.toml": "settings.toml",
    "requirements.txt": "requirements.txt",
    "requirements-dev.txt": "requirements-dev.txt",
    "Dockerfile": "Dockerfile",
    "compose.yaml": "compose.yaml",
    "kubernetes.yaml": "kubernetes.yaml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
}
"""The templates, and the files that are made of them."""

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
"""The names that topics, containers and Kubernetes all take."""

_TAKEN: Final = frozenset(
    {
        *keyword.kwlist,
        *sys.stdlib_module_names,
        *("pykstreams", "pytest", "click", "confluent_kafka", "fastavro", "h11", "kafka", "mmh3", "orjson", "rich"),
        *("rocksdict", "starlette", "typing_extensions", "uvicorn"),
    }
)
"""Names that the module of a project must not have: the folder of the project comes first on the path, so it would
stand in for these; keywords are no modules."""


@click.command()
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to write it; by default a folder of that name.")
def init(name: str, folder: Path | None) -> None:
    """Write a project to start from: a topology, its test, settings, and what runs it in containers.

    NAME is the application id, in small letters, digits and hyphens. No file that is there is written over.

    \b
        pykstreams init shop
        pip install -r shop/requirements-dev.txt
        cd shop && python -m pytest
    """
    if not _NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is no name for all that it names; take small letters, digits and hyphens, such as 'shop-totals'",
            param_hint="NAME",
        )
    valid_name(name)
    module, target = name.replace("-", "_"), folder or Path(name)
    if module in _TAKEN:
        raise click.BadParameter(
            f"{name!r} is the name of something else in Python; take another one, such as '{name}-app'",
            param_hint="NAME",
        )
    texts = {target / path.format(module=module): _text(template, name, module) for template, path in FILES.items()}
    there = [str(path) for path in texts if path.exists()]
    if there:
        raise ConfigError(f"{', '.join(there)} is there already; take another folder with --folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"the project cannot be written into {str(target)!r}: {error}; take another folder"
        ) from error
    for path in texts:
        click.echo(str(path))
    click.echo(
        f"\nNext: cd {target} && pip install -r requirements-dev.txt && python -m pytest && "
        f"pykstreams run {module}.py --embedded --reload"
    )


def _text(template: str, name: str, module: str) -> str:
    source = resources.files("pykstreams.cli.project").joinpath("template", f"{template}.txt")
    return Template(source.read_text(encoding="utf-8")).substitute(name=name, module=module)
