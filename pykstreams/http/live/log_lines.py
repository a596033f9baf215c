"""The latest lines of the log, for the live page."""

from __future__ import annotations

import logging
from collections import deque

LINES = 200
_LONGEST = 2_000


class LogLines(logging.Handler):
    """Keeps the latest lines that pykstreams logs, from ``attach`` until ``detach``.

    It changes no level: only what is logged anyway is kept.
    """

    def __init__(self, lines: int = LINES) -> None:
        super().__init__()
        self._kept: deque[dict[str, object]] = deque(maxlen=lines)

    def attach(self) -> None:
        """Begins to keep lines."""
        logging.getLogger("pykstreams").addHandler(self)

    def detach(self) -> None:
        """Keeps no more lines."""
        logging.getLogger("pykstreams").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:  # arguments that do not fit: logging tells of it, as for any other handler
            self.handleError(record)
            return
        if record.exc_info is not None and record.exc_info[1] is not None:
            text = f"{text}: {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        text = text.encode("utf-8", "backslashreplace").decode()  # what cannot be sent would spoil the whole answer
        self._kept.append(
            {
                "at_ms": int(record.created * 1000),
                "level": record.levelname,
                "thread": record.threadName or "",
                "text": text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...",
            }
        )

    def lines(self) -> list[dict[str, object]]:
        """Returns them, the oldest first."""
        return list(self._kept)
