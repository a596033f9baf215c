"""Who may ask: whoever sends the token of the application, where it has one."""

from __future__ import annotations

import hmac


class Access:
    """Compares tokens in a time that tells nothing of them.

    :param token: the one of the application; ``None`` lets everybody ask.
    """

    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else token.encode()

    @property
    def is_limited(self) -> bool:
        """Whether a token is needed."""
        return self._token is not None

    def allows(self, authorization: str) -> bool:
        """Whether a request with this ``Authorization`` header may ask."""
        if self._token is None:
            return True
        scheme, _, sent = authorization.partition(" ")
        fits = hmac.compare_digest(sent.strip().encode("utf-8", "surrogateescape"), self._token)
        return fits and scheme.lower() == "bearer"
