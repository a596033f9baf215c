"""Which requests ask for the row of one key, and for nothing that a task of this process may not know."""

from __future__ import annotations

from typing import NamedTuple

from pykstreams.core.errors import ConfigError
from pykstreams.http.exchange import HttpRequest
from pykstreams.http.options import stale_ms, whole_ms


class AskedKey(NamedTuple):
    """A question for the row of one key.

    :param text: the key, as its serde writes it.
    :param as_of: the time at which a version was valid, in ms; ``None`` for the newest one.
    """

    store: str
    text: str
    as_of: int | None = None

    @property
    def path(self) -> str:
        """The path of its request, unquoted."""
        return f"/stores/{self.store}/keys/{self.text}"


def asked_key(request: HttpRequest) -> AskedKey | None:
    """Returns the question that a request is; ``None`` for any other one, and for what a route has to look at.

    How old an answer may be does not matter to the task that has the key.

    >>> asked_key(HttpRequest("/stores/prices/keys/a/b", "/stores/prices/keys/a/b", "as_of=5", ""))
    AskedKey(store='prices', text='a/b', as_of=5)
    """
    parts = request.place.split("/", 4)
    if len(parts) < 5 or parts[1] != "stores" or parts[3] != "keys" or not parts[2] or not parts[4]:
        return None
    if not request.query:
        return AskedKey(parts[2], parts[4])
    name, _, text = request.query.partition("=")
    if name == "stale" and _is_age(text):
        return AskedKey(parts[2], parts[4])
    if name == "as_of" and (time := whole_ms(text)) is not None:
        return AskedKey(parts[2], parts[4], time)
    return None


def _is_age(text: str) -> bool:
    try:
        stale_ms(text)
    except ConfigError:
        return False
    return True
