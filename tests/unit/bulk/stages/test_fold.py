"""Rows of a changelog on their way to the store: many rows cost no more each than few."""

from __future__ import annotations

import gc
from itertools import chain

import pytest

from pykstreams.bulk.stages import fold
from pykstreams.state.interfaces.store import ChangelogRow


def test_rows_of_a_key_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "CHUNK", 2)
    rows: list[ChangelogRow] = [(key, b"", at, ()) for at, key in enumerate([b"a", b"b", b"b", b"b", b"c", b"d", b"d"])]

    assert [[0, 1, 2, 3], [4, 5, 6]] == [[row[2] for row in chunk] for chunk in fold._chunks(iter(rows))]
    assert [[0]] == [[row[2] for row in chunk] for chunk in fold._chunks(iter(rows[:1]))]
    assert [] == list(fold._chunks(iter([])))


def test_iterators_do_not_pile_up_with_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "CHUNK", 1)
    alive = [
        sum(isinstance(each, chain) for each in gc.get_objects())
        for _ in fold._chunks(iter([(b"%03d" % at, b"", at, ()) for at in range(50)]))
    ]

    assert 50 == len(alive)
    assert max(alive) - min(alive) <= 1
