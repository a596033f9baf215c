"""Process ids in the order of Java."""

from __future__ import annotations

import uuid

from pykstreams.runtime.membership.process_id import ProcessId


def test_halves_are_compared_as_signed_numbers() -> None:
    texts = [
        "80000000-0000-0000-0000-000000000000",
        "ffffffff-0000-0000-0000-000000000000",
        "00000000-0000-0000-8000-000000000000",
        "00000000-0000-0000-0000-000000000000",
        "00000000-0000-0001-0000-000000000000",
        "7fffffff-0000-0000-0000-000000000000",
    ]
    ids = [ProcessId(uuid.UUID(text)) for text in texts]
    assert sorted([ids[at] for at in (3, 5, 0, 4, 2, 1)]) == ids
    assert ids[0] < ids[1] <= ids[1] and ids[-1] > ids[0]
    assert str(ids[0]) == texts[0]
