"""Finds and builds the topology that a user names: ``module:attribute``, ``path.py`` or ``path.py:attribute``.

A script is loaded first and built later, because its own settings (``config``, ``application_id``) are part of
the configuration that it is built with. The command line and the jobs that build state in bulk name scripts so.

Invariant: whatever is wrong with a script is a ``ScriptError`` that names it and says what to write.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.dsl.builder import StreamsBuilder
from pykstreams.topology.topology import Topology

T = TypeVar("T")

ATTRIBUTES = ("topology", "build", "build_topology", "builder")
"""Where a topology is looked for in a script when no attribute is named, in this order."""


class ScriptError(StreamsError):
    """The topology script cannot be found, loaded or understood."""


_HOW = "define a function build() that returns a Topology or a StreamsBuilder, or name one as {where}:ATTRIBUTE"


@dataclass(frozen=True, slots=True)
class Script:
    """A loaded script, and which of its attributes gives the topology (``None``: to be looked for)."""

    where: str
    module: ModuleType
    attribute: str | None

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of the script itself: the mapping ``config``, and the text ``application_id``."""
        settings: dict[str, object] = {}
        config = getattr(self.module, "config", None)
        if isinstance(config, StreamsConfig):
            settings.update(config.originals)
        elif isinstance(config, Mapping):
            settings.update(config)
        application_id = getattr(self.module, "application_id", None)
        if isinstance(application_id, str):
            settings["application.id"] = application_id
        return settings

    def build(self, config: StreamsConfig) -> Topology:
        """Builds the topology with the configuration."""
        name, found = self._found()
        place = f"{self.where}:{name}"
        if callable(found) and not isinstance(found, Topology | StreamsBuilder):
            found = _called(place, found, config)
            place += "()"
        if isinstance(found, StreamsBuilder):
            return found.build(config)
        if isinstance(found, Topology):
            return found
        if found is None and place.endswith("()"):
            raise ScriptError(f"{place} returned nothing; end it with 'return builder.build()'")
        raise ScriptError(f"{place} is {found!r}; expected a Topology, a StreamsBuilder or a function that returns one")

    def _found(self) -> tuple[str, object]:
        if self.attribute is not None:
            try:
                return self.attribute, _attribute(self.module, self.attribute)
            except AttributeError as error:
                raise ScriptError(f"{self.where} has no attribute {self.attribute!r}") from error
        for name in ATTRIBUTES:
            if hasattr(self.module, name):
                return name, getattr(self.module, name)
        found = {
            name: value for name, value in vars(self.module).items() if isinstance(value, Topology | StreamsBuilder)
        }
        if len(found) == 1:
            return found.popitem()
        if not found:
            raise ScriptError(f"{self.where} defines no topology; {_HOW.format(where=self.where)}")
        names = ", ".join(sorted(found))
        raise ScriptError(f"{self.where} defines several topologies ({names}); name one as {self.where}:ATTRIBUTE")


def load_script(reference: str) -> Script:
    """Imports the script that a reference names; its folder, or the current one, goes first on ``sys.path``."""
    path, attribute = split_reference(reference)
    module = _from_path(Path(path)) if path.endswith(".py") else _from_name(path)
    return Script(path, module, attribute)


def split_reference(reference: str) -> tuple[str, str | None]:
    """The script or module of a reference, and the attribute, if it names one.

    >>> split_reference("shop.topology:build"), split_reference("shop.py"), split_reference("C:\\\\shop.py")
    (('shop.topology', 'build'), ('shop.py', None), ('C:\\\\shop.py', None))
    """
    path, colon, attribute = reference.rpartition(":")
    if not colon or attribute.endswith(".py"):  # a path may have a colon of its own
        return reference, None
    return path, attribute or None


def _from_path(path: Path) -> ModuleType:
    if not path.is_file():
        raise ScriptError(f"there is no script {str(path)!r} (looked in {str(Path.cwd())!r})")
    path = path.resolve()
    _put_first(str(path.parent))
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    # a script may be called like a module that exists, json.py for instance: then it gets a name of its own
    taken = known is not None or path.stem in sys.stdlib_module_names or not path.stem.isidentifier()
    name = f"pykstreams_script_{path.stem}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ScriptError(f"{str(path)!r} is no Python script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    try:
        _loaded(str(path), lambda: loader.exec_module(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _from_name(name: str) -> ModuleType:
    _put_first(str(Path.cwd()))
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise ScriptError(
            f"there is no module {name!r} (looked in {str(Path.cwd())!r} and the installed packages); name a topology "
            "as module:attribute or as path.py"
        )
    return _loaded(name, lambda: importlib.import_module(name))


def _put_first(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _loaded(where: str, load: Callable[[], T]) -> T:
    try:
        return load()
    except StreamsError:
        raise
    except Exception as error:
        raise ScriptError(f"{where} raised {type(error).__name__} while it was loaded") from error


def _attribute(module: ModuleType, path: str) -> object:
    found: object = module
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _called(place: str, function: Callable[..., object], config: StreamsConfig) -> object:
    arguments = (config,) if _takes_config(place, function) else ()
    try:
        return function(*arguments)
    except StreamsError:
        raise
    except Exception as error:
        raise ScriptError(f"{place}() raised {type(error).__name__} while it built the topology") from error


def _takes_config(place: str, function: Callable[..., object]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a function of C may have none to inspect
        return False
    needed = [parameter for parameter in parameters if _must_be_given(parameter)]
    if len(needed) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in needed):
        names = ", ".join(parameter.name for parameter in needed)
        raise ScriptError(
            f"{place}() needs the arguments {names}; a function that builds a topology takes none, or the StreamsConfig"
        )
    return bool(needed)


def _must_be_given(parameter: inspect.Parameter) -> bool:
    variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variable
