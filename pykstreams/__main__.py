"""``python -m pykstreams``: the same as the ``pykstreams`` program."""

from __future__ import annotations

from pykstreams.cli import main

if __name__ == "__main__":
    main()
