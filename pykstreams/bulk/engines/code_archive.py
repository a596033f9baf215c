"""The code of an application as one archive, for machines that do not have the files it lies in.

A script becomes a module of the archive, under the name that it was loaded with here, so that functions of it that are
pickled by name are found, too. Invariant: equal code makes an equal archive, whose name tells one from another.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pykstreams.core.errors import ConfigError
from pykstreams.dsl.script import load_script, split_reference

_COMPILED: Final = "__pycache__"


@dataclass(frozen=True)
class CodeArchive:
    """An archive that Python imports from.

    :param named: how the application is named where the archive is.
    """

    named: str
    content: bytes

    @property
    def name(self) -> str:
        """The name of the archive's file."""
        return f"pykstreams-{hashlib.sha256(self.content).hexdigest()[:16]}.zip"


def code_archive(named: str, modules: Sequence[str] = ()) -> CodeArchive:
    """Packs the code of an application: its script, or the package or module that it is in, and what is named besides.

    :param modules: modules, and folders that are packages.
    """
    where, attribute = split_reference(named)
    module = load_script(named).module.__name__
    files: dict[str, Path] = {}
    if where.endswith(".py"):
        files[f"{module}.py"] = Path(where).resolve()
    else:
        _add(files, _home_of(module))
    for path in modules:
        _add(files, Path(path))
    return CodeArchive(f"{module}:{attribute}" if attribute else module, _zipped(files))


def _home_of(module: str) -> Path:
    """The package that a module is in, or its file."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    if spec is None or spec.origin is None:
        raise ConfigError(f"the code of module {module!r} is not found; name its files by modules=[...] (--module)")
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def _add(files: dict[str, Path], path: Path) -> None:
    """Adds a file, or a folder with all that is in it, by their names in the archive."""
    path = path.resolve()
    if path.is_dir():
        found = [one for one in sorted(path.rglob("*")) if one.is_file() and _COMPILED not in one.parts]
    elif path.is_file():
        found = [path]
    else:
        raise ConfigError(f"there is no file or folder {str(path)!r} to be sent to the executors; correct modules=")
    for one in found:
        name = one.relative_to(path.parent).as_posix()
        if files.setdefault(name, one) != one:
            raise ConfigError(
                f"{str(files[name])!r} and {str(one)!r} would both be {name!r} on the executors; rename one of them, "
                "or put them into packages"
            )


def _zipped(files: Mapping[str, Path]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, path in sorted(files.items()):
            file.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive.getvalue()
