"""Guarded home of ``pykstreams.serdes``: the folder has exactly one import name."""

if __name__ != "pykstreams.serdes":  # this folder has one name
    raise ImportError(f"{__name__!r} is not importable; import pykstreams.serdes instead")
