"""The program's log on standard error: plain lines with time, worker and module, or objects of JSON, one a line.

One level is for pykstreams and the user's code, another one for other libraries.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType

from pykstreams.core.user_code.frames import is_library

log = logging.getLogger(__name__)


class OwnRecords(logging.Filter):
    """Lets records below the level of libraries pass only if they are of pykstreams or of the user's code, and those
    of libraries below the level of these only by theirs.

    :param package: the user's package, which may be installed among the libraries.
    """

    def __init__(self, package: str, level: int, libraries: int) -> None:
        super().__init__()
        self._packages = frozenset(("pykstreams", package))
        self._level = level
        self._libraries = libraries

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= max(self._level, self._libraries):
            return True
        is_own = record.name.partition(".")[0] in self._packages or not is_library(record.pathname)
        return record.levelno >= (self._level if is_own else self._libraries)


class JsonLines(logging.Formatter):
    """A record as an object of JSON on one line.

    ``time`` (UTC, ISO 8601, ms), ``level``, ``logger``, ``message``, ``thread``; ``worker`` where there are several;
    ``exception``, the traceback as text, where there is one.

    :param worker: the number of this process among several.
    """

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if self._worker is not None:
            said["worker"] = self._worker
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            said["stack"] = self.formatStack(record.stack_info)
        return json.dumps(said, ensure_ascii=False)


def configure_logging(
    level: str, worker: int | None, topology: str, *, libraries: str | None = None, form: str = "text"
) -> None:
    """Sends log records from a level on to standard error.

    :param worker: is named in each line.
    :param topology: how the user has named the topology.
    :param libraries: the level of other libraries; by default warnings, or that of pykstreams where it is higher.
    :param form: ``text`` or ``json``; with JSON an error that ends the program is a line, too.
    """
    own = logging.getLevelNamesMapping()[level.upper()]
    others = max(own, logging.WARNING) if libraries is None else logging.getLevelNamesMapping()[libraries.upper()]
    place = "" if worker is None else f" [worker {worker}]"
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(OwnRecords(topology.partition(":")[0].partition(".")[0], own, others))
    handler.setFormatter(
        JsonLines(worker)
        if form == "json"
        else logging.Formatter(f"%(asctime)s %(levelname)-7s{place} %(name)s: %(message)s")
    )
    logging.basicConfig(handlers=[handler], level=min(own, others), force=True)
    if form == "json":
        sys.excepthook = _log_uncaught


def writes_json() -> bool:
    """Whether the log is JSON."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("the program ends with %s: %s", kind.__name__, error, exc_info=(kind, error, trace))
