"""Guarded home of ``pykstreams.processors``: the folder has exactly one import name."""

if __name__ != "pykstreams.processors":  # this folder has one name
    raise ImportError(f"{__name__!r} is not importable; import pykstreams.processors instead")
