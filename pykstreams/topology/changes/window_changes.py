"""The fate of the rows of a store whose windows, or the times for which it keeps them, have changed, or which lie
on disk in another form than they are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykstreams.topology.changes.change import RESET, Change, Verdict
from pykstreams.topology.changes.shape import StoreShape

_RESTORED: Final = (
    "stop all workers and delete the folder of the application in state.dir: the store is restored from its changelog"
)
_JOIN: Final = "JoinWindows("
_SESSIONS: Final = "SessionWindows("
_COUNTED: Final = "CountWindows("


def window_changes(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    """Yields what changed windows, retention, history and forms do to a store that keeps its name."""
    yield from _definition(old, new)
    yield from _retention(old, new)
    yield from _history(old, new)
    yield from _form(old, new)


def _retention(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    before, after, topic = old.retention_ms, new.retention_ms, old.changelog_retention_ms
    if before is None or after is None or before >= after:
        return
    longer = f"the store keeps {after} ms instead of {before}"
    raised = "raise retention.ms of the changelog topic with kafka-configs.sh, before workers start"
    if topic is None and (old.changelog is None or old.disk_form is not None):  # it keeps rows for ever
        return
    if topic is None or topic < after:
        kept = "does not" if topic is None else f"keeps {topic}, if the old one has made it"
        yield _broken(old, f"{longer}, and its changelog topic {kept}", f"{raised}; or {RESET}")
        return
    yield Change(
        "changed",
        old.name,
        f"{longer}; a changelog topic that the old one has made keeps {topic}, so that all is restored while stream "
        f"time is less than {topic - after} ms behind the clock",
        f"nothing is to be done, if it is; otherwise {raised}",
        Verdict.SAFE,
    )


def _form(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    """Yields the fate of rows that lie on disk in another form; another kind of store is told elsewhere."""
    if old.kind != new.kind or (old.history_retention_ms is None) != (new.history_retention_ms is None):
        return
    if old.disk_form is None:
        yield from _unknown_form(old, new)
    elif new.disk_form is not None and old.disk_form != new.disk_form:
        what = f"its rows lie on disk as {old.disk_form!r}, and are looked for as {new.disk_form!r}"
        if old.changelog is None or old.changelog != new.changelog:
            yield _broken(old, f"{what}, and there is no changelog to restore it from", RESET)
            return
        yield Change(
            "moved",
            old.name,
            f"{what}: the store is set aside, and restored from its changelog",
            "nothing is to be done; the first start takes as long as that",
            Verdict.SAFE,
        )


def _unknown_form(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    intervals = (old.segment_interval_ms, new.segment_interval_ms)
    if None not in intervals and intervals[0] != intervals[1] and not new.kind.startswith("in-memory"):
        yield _broken(
            old,
            f"rows lie on disk in parts of {intervals[0]} ms, and are looked for in parts of {intervals[1]} ms (they "
            "follow from how long rows are kept), so that some are not found",
            f"{_RESTORED}; or {RESET}" if old.changelog is not None else RESET,
        )
    elif new.disk_form is not None and (old.retention_ms is None or old.segment_interval_ms is not None):
        yield Change(
            "unknown",
            old.name,
            "the description of the old one is of an older release, and does not tell in which form rows lie on disk",
            "see to it that emit strategies and dsl.store.format are as they were; or start this release with the old "
            f"topology first, which notes the form; or {_RESTORED}",
            Verdict.SAFE,
        )


def _definition(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    before, after = old.windows, new.windows
    if before is None or after is None:
        before = None if old.window_size_ms is None else f"windows of {old.window_size_ms} ms"
        after = None if new.window_size_ms is None else f"windows of {new.window_size_ms} ms"
    if before is None or after is None or before == after:
        return
    changed = f"the windows were {before} and are {after}: "
    if before.startswith(_JOIN) and after.startswith(_JOIN):
        yield Change(
            "changed",
            old.name,
            f"{changed}records that are there are joined by the new ones with what comes from now on, and not again "
            "with what has come",
            "nothing is to be done, if what has come need not be joined anew; otherwise begin anew with 'pykstreams "
            "reset'",
            Verdict.SAFE,
        )
    elif before.startswith(_COUNTED) and after.startswith(_COUNTED):
        yield Change(
            "changed",
            old.name,
            f"{changed}a window that is begun is full at the new size, or with its next record",
            "nothing is to be done",
            Verdict.SAFE,
        )
    elif before.startswith(_SESSIONS) and after.startswith(_SESSIONS):
        yield _accepted(
            old, f"{changed}sessions that are there stay as they were made by the old gap, until a record joins them"
        )
    elif old.window_size_ms != new.window_size_ms:
        yield _broken(
            old,
            f"{changed}a row has only the start of its window, so that those that are there are read with another end, "
            "and records are added to them",
            RESET,
        )
    else:
        yield _accepted(
            old,
            f"{changed}rows that are there stay; windows of the new kind that began before the change have only what "
            "comes after it",
        )


def _history(old: StoreShape, new: StoreShape) -> Iterator[Change]:
    before, after = old.history_retention_ms, new.history_retention_ms
    if before == after or old.retention_ms is not None:  # of windows
        return
    if before is None or after is None:
        # a description that does not know of windows knows of no history either
        if old.fed_by is not None and new.fed_by is not None:
            was, now = ("no old versions", "keeps them") if before is None else ("old versions", "keeps none")
            yield _broken(old, f"the store keeps {was}, and the new one {now}: rows have another form", RESET)
        return
    if before < after:
        yield _broken(
            old,
            f"the store keeps old versions for {after} ms instead of {before}, and those that are gone stay gone",
            "raise min.compaction.lag.ms of the changelog topic with kafka-configs.sh, before workers start, and "
            f"accept that history grows from now on; or {RESET}",
        )


def _broken(store: StoreShape, what: str, cure: str) -> Change:
    return Change("broken", store.name, what, cure, Verdict.NEEDS_RESET)


def _accepted(store: StoreShape, what: str) -> Change:
    return _broken(store, what, f"accept it for the windows that are open at the change; or {RESET}")
