"""The types of the fields of dataclasses and ``TypedDict``, evaluated, with the cure where one cannot be."""

from __future__ import annotations


def import_cure(error: NameError) -> str:
    """Returns what to do when an annotation names something that is not there when it is evaluated."""
    return f"import {error.name} at run time, not under TYPE_CHECKING, or move it to the level of a module"
