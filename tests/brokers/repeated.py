"""Something that is done again and again beside a test, such as to let records flow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(do: Callable[[], object], every_s: float, name: str) -> Iterator[None]:
    """Calls a function every so many seconds, in a thread of that name, for the length of a block."""
    stopping = threading.Event()

    def run() -> None:
        while not stopping.wait(every_s):
            do()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
