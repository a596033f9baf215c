"""Settings that name a class, an object or a function to import: what they name, and what is wrong with it.

``faults`` imports without making anything, so that a wrong name is told before there are topics, workers and tasks.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from pykstreams.core.errors import ConfigError
from pykstreams.core.references import is_reference, load_reference
from pykstreams.core.settings.clients import client_key
from pykstreams.core.settings.keys import KEYS
from pykstreams.core.settings.librdkafka_keys import Kind
from pykstreams.core.settings.parsing import shown
from pykstreams.core.settings.types import Component


def imported(key: str, reference: str) -> object:
    """Returns what the text of a setting names; ``ConfigError`` when it cannot be imported."""
    try:
        return load_reference(reference)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"setting {key!r} is {reference!r}, which cannot be imported: {error}; correct it, or install the module "
            "where the application runs"
        ) from error
    except Exception as error:
        raise ConfigError(
            f"setting {key!r} is {reference!r}, whose module raised {type(error).__name__} while it was imported: "
            f"{error}; correct the module"
        ) from error


def faults(settings: Mapping[str, object]) -> Iterator[tuple[str, ConfigError]]:
    """Yields the names of settings that lead nowhere, or to something else than they need, each with its error."""
    for name, value in settings.items():
        key = KEYS.get(name)
        component = None if key is None else key.component
        if component is None and not _is_callable_of_client(name):
            continue
        for one in value if isinstance(value, tuple | list) else (value,):
            try:
                _check(name, one, component)
            except ConfigError as error:
                yield name, error


def _is_callable_of_client(name: str) -> bool:
    key = client_key(name)
    return key is not None and key.kind is Kind.CALLABLE


def _check(name: str, value: object, component: Component | None) -> None:
    found = value
    if isinstance(value, str):
        if not is_reference(value):  # of another form: refused when it was read
            return
        found = imported(name, value)
    if component is None:
        if not callable(found) and not name.endswith("logger"):
            raise _wrong(name, value, found, "something that can be called")
    elif found is not None and not component.accepts(found):
        raise _wrong(name, value, found, component.what)
    elif isinstance(found, type) and (needed := _needed_arguments(found)) is not None:
        raise ConfigError(
            f"setting {name!r} is {shown(name, value)}, a class that cannot be made without arguments "
            f"({needed}); give each of them a default, and read settings in configure(configs)"
        )


def _wrong(name: str, value: object, found: object, expected: str) -> ConfigError:
    return ConfigError(f"setting {name!r} is {shown(name, value)}, which gives {found!r}; expected {expected}")


def _needed_arguments(kind: type) -> str | None:
    """The reason why a class cannot be made without arguments, ``None`` where it can, or nobody can tell."""
    try:
        signature = inspect.signature(kind)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind()
    except TypeError as error:
        return str(error)
    return None
