"""The topic that the deserializers of a store get: by it an error of theirs tells which store the row is in.

Rows are read for each record, so nothing is put around their deserializers. All that this package makes, and those of
users behind ``bind_deserializer``, raise errors with the topic that they were bound to.
"""

from __future__ import annotations

from pykstreams.core.errors import SerdeError
from pykstreams.core.shown_values import shown


class StoreTopic(str):
    """The name of a topic, and that of the store whose rows are read by it."""

    __slots__ = ("store",)

    store: str

    @classmethod
    def of(cls, topic: str, store: str) -> StoreTopic:
        """Returns the topic for that store."""
        made = cls(topic)
        made.store = store
        return made


def row_of(error: BaseException) -> str | None:
    """Names the row of a store that could not be read; ``None`` for all other errors."""
    if not isinstance(error, SerdeError) or not isinstance(error.topic, StoreTopic):
        return None
    store = f"store {error.topic.store!r}"
    return f"a row of {store}" if error.row_key is None else f"the row of key {shown(error.row_key)} in {store}"
