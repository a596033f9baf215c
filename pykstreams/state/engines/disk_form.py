"""The form in which the rows of a store lie on disk: what its keys begin with, and what its values consist of.

It is a text, in the file ``form`` in the folder of the store, so that it goes where the rows go. Folders that earlier
releases have written have none.

Invariant: a store with another form is never opened, for it would find none of the rows, or take their bytes for
something else. Changelogs have one form for all, so that a store with a changelog is restored from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pykstreams.core.errors import DamagedStoreError
from pykstreams.core.ids import TaskId

FORM_FILE: Final = "form"

_CURE: Final = (
    "They are read only with the topology and the settings that wrote them. A worker sets the store aside and restores "
    "it from its changelog; where it has none, go back to what wrote the rows, or delete the folder, and the store "
    "begins empty"
)


class OtherFormError(DamagedStoreError):
    """The rows of a store lie on disk in another form than the one in which it looks for them; ``reason`` tells which.

    They are not damaged, but as little use to the store: both are set aside, and restored.
    """

    def __init__(self, reason: str, *, store: str, task_id: TaskId | None = None) -> None:
        super().__init__(f"{reason}. {_CURE}", store=store, task_id=task_id)
        self.reason = reason


def check_form(folder: Path, form: str | None, store: str, task_id: TaskId) -> None:
    """Raises ``OtherFormError`` where the folder of a store has rows of another form, as far as that is known."""
    found = _kept(folder)
    if form is not None and found is not None and found != form:
        raise other_form(folder, store, task_id, f"as {found!r}, and are looked for as {form!r}")


def keep_form(folder: Path, form: str | None) -> None:
    """Notes the form of the rows that are, or will be, in the folder of a store, which exists."""
    if form is not None and _kept(folder) is None:
        beside = folder / f"{FORM_FILE}.new"
        beside.write_text(form, encoding="utf-8")
        beside.replace(folder / FORM_FILE)


def other_form(folder: Path, store: str, task_id: TaskId, what: str) -> OtherFormError:
    """Returns the error; ``what`` completes "its rows lie there ..."."""
    reason = f"store {store!r} of task {task_id} in {str(folder)!r} cannot be opened: its rows lie there {what}"
    return OtherFormError(reason, store=store, task_id=task_id)


def _kept(folder: Path) -> str | None:
    """The form in the file; ``None`` without one, or for an empty one, which a crash of the machine may leave."""
    try:
        return (folder / FORM_FILE).read_text(encoding="utf-8", errors="replace") or None
    except (FileNotFoundError, NotADirectoryError):
        return None
