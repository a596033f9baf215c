"""Which line of a traceback is the user's: not one of pykstreams, nor one of a library that the user's code called."""

from __future__ import annotations

import sysconfig
import traceback
from functools import cache
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).resolve().parents[2])
_OWN = (_PACKAGE, *(str(Path(_PACKAGE).parent / name) for name in ("processors", "serdes")))


def user_frame(error: BaseException) -> tuple[FrameType, int] | None:
    """Returns the innermost frame of the user's code that an exception came through, with its line.

    What pykstreams called first is taken for the user's, wherever it is installed, and with it the rest of its package.
    ``None`` where all frames are of pykstreams.
    """
    outside = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if not _is_own(frame)]
    if not outside:
        return None
    package = _package(outside[0][0])
    return [
        (frame, line)
        for frame, line in outside
        if _package(frame) == package or not is_library(frame.f_code.co_filename)
    ][-1]


def is_library(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed library; what has no file does, such as generated methods."""
    return filename.startswith(("<", *_library_folders())) or "site-packages" in Path(filename).parts


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _is_own(frame: FrameType) -> bool:
    filename = frame.f_code.co_filename
    generated = filename.startswith("<") and _package(frame) == "pykstreams"  # such as methods of records
    return generated or filename.startswith(_OWN)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "?")).partition(".")[0]
