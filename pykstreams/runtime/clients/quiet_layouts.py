"""Keeps ``kafka-python`` from warning where it is imported, which would end those who make warnings errors.

It reads the layouts of messages by functions of ``importlib.resources`` that Python 3.11 and 3.12 call deprecated; 3.13
does so no more. pytest 9.2 makes errors of warnings before it loads plugins, of which ``pykstreams`` is one.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_layouts() -> Iterator[None]:
    """Leaves out that one warning in a block that reads layouts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"(read|open)_text is deprecated", DeprecationWarning)
        yield
