"""The part of the tree that a release is made from."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ["pykstreams", "processors", "serdes"]
FILES = ["setup.cfg", "pyproject.toml", "README.md", "LICENSE"]
LINKS = ["pykstreams/processors", "pykstreams/serdes"]
KINDS = ("*.py", "*.json", "*.html", "*.css", "*.js", "*.txt")
"""Modules, layouts of messages, the live page, and the templates of a project."""


def copy_tree(target: Path) -> None:
    """Copies it with its links, so that a build leaves nothing behind in the tree."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, target / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, target / file)


def files_of_packages() -> Iterator[Path]:
    """Yields what belongs to a package, relative to the root; each file once, whatever links lead to it."""
    for folder in FOLDERS:
        for kind in KINDS:
            for path in (ROOT / folder).rglob(kind):
                relative = path.relative_to(ROOT)
                if not any((ROOT / parent).is_symlink() for parent in relative.parents):
                    yield relative
