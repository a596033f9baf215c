"""Where settings come from on the command line, and which source wins.

From strong to weak: options (``--application-id`` and the like), ``--set key=value``, the environment
(``PYKSTREAMS_COMMIT_INTERVAL_MS``), ``--config FILE``, and what the script itself says (``config``,
``application_id``).

Invariant: a wrong setting is reported with the source it came from, all of them in one error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.settings.parsing import dotted_name, nearest_keyword, parse_setting
from pykstreams.core.settings.resolving import faults

ENVIRONMENT_PREFIX = "PYKSTREAMS_"

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """Settings from one place, which the text names for messages."""

    where: str
    settings: Mapping[str, object]


def combine(sources: Sequence[Source], *, resolves: bool = False) -> StreamsConfig:
    """Makes one configuration; sources stand from weak to strong.

    :param resolves: whether what settings name as ``module:attribute`` is imported, too.
    """
    problems: list[str] = []
    merged: dict[str, object] = {}
    places: dict[str, str] = {}
    for source in sources:
        for name, value in source.settings.items():
            try:
                merged[name] = parse_setting(name, value)
                places[name] = source.where
            except ConfigError as error:
                problems.append(f"{error} [{source.where}]")
    problems += [f"{error} [{places[name]}]" for name, error in (faults(merged) if resolves else ())]
    if len(problems) == 1:
        raise ConfigError(problems[0])
    if problems:
        lines = "\n".join(f"- {problem}" for problem in problems)
        raise ConfigError(f"{len(problems)} settings are wrong:\n{lines}")
    return StreamsConfig(merged)


def from_pairs(pairs: Iterable[str]) -> Source:
    """Reads ``key=value`` as ``--set`` gives it.

    >>> from_pairs(["poll.ms=50", "app.query=a=b"]).settings
    {'poll.ms': '50', 'app.query': 'a=b'}
    """
    settings: dict[str, object] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"--set {pair!r} is not of the form key=value; write --set commit.interval.ms=5000")
        settings[name.strip()] = value
    return Source("--set", settings)


def from_environment(environment: Mapping[str, str]) -> Source:
    """Reads the variables that start with ``PYKSTREAMS_``: upper case, an underscore for every dot.

    Those that name no setting are left out: Kubernetes makes such for a service whose name starts with ``pykstreams-``.
    """
    named = {_setting_name(variable): value for variable, value in sorted(environment.items())}
    return Source("environment", {name: value for name, value in named.items() if name is not None})


def unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yields what is to be said of each variable that starts with ``PYKSTREAMS_`` and names no setting."""
    for variable in sorted(environment):
        if variable.startswith(ENVIRONMENT_PREFIX) and _setting_name(variable) is None:
            near = nearest_keyword(variable.removeprefix(ENVIRONMENT_PREFIX).lower())
            hint = f"; did you mean {ENVIRONMENT_PREFIX}{near.upper()}?" if near is not None else ""
            yield f"environment variable {variable} names no setting and is ignored{hint}"


def _setting_name(variable: str) -> str | None:
    if not variable.startswith(ENVIRONMENT_PREFIX):
        return None
    return dotted_name(variable.removeprefix(ENVIRONMENT_PREFIX).lower())


def from_file(path: Path) -> Source:
    """Reads a file of Java properties (``.properties``) or TOML (``.toml``)."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration file {str(path)!r} cannot be read: {error}") from error
    if path.suffix == ".toml":
        try:
            return Source(str(path), dict(_flattened(tomllib.loads(text))))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"configuration file {str(path)!r} is no TOML: {error}") from error
    if path.suffix == ".properties":
        return Source(str(path), dict(read_properties(text)))
    raise ConfigError(f"configuration file {str(path)!r} has the suffix {path.suffix!r}; expected .properties or .toml")


def read_properties(text: str) -> Iterator[tuple[str, str]]:
    r"""Yields keys and values of Java's properties format: comments, continued lines and escapes included.

    >>> dict(read_properties("# brokers\nbootstrap.servers = a:9092,\\\n    b:9092\nclient.id:till"))
    {'bootstrap.servers': 'a:9092,b:9092', 'client.id': 'till'}
    """
    for line in _logical_lines(text):
        end = 0
        while end < len(line) and line[end] not in "=: \t\f":
            end += 2 if line[end] == "\\" else 1
        value = line[end:].lstrip(" \t\f")
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(" \t\f")
        yield _unescaped(line[:end]), _unescaped(value)


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escape = match.group(1)
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPES.get(escape, escape)

    return _ESCAPE.sub(replace, text)


def _flattened(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """A dotted key of TOML is a table in a table; this puts the dots back."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
