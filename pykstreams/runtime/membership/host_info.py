"""The address of an instance, by which others reach its state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from pykstreams.core.errors import ConfigError

_ENDPOINT: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")


@dataclass(frozen=True, slots=True)
class HostInfo:
    """The address of an instance, as its ``application.server`` says."""

    host: str
    port: int

    UNAVAILABLE: ClassVar[HostInfo]
    """Stands for an address that is not known."""

    @classmethod
    def from_endpoint(cls, endpoint: str | None) -> HostInfo | None:
        """Reads ``host:port``; ``None`` for an empty text, ``ConfigError`` for any other.

        >>> HostInfo.from_endpoint("shop-3:7070")
        HostInfo(host='shop-3', port=7070)
        """
        if not endpoint or not endpoint.strip():
            return None
        found = _ENDPOINT.fullmatch(endpoint.strip())
        if found is None or not found[1]:
            raise ConfigError(f"the endpoint {endpoint!r} is no host:port; write application.server as 'shop-3:7070'")
        return cls(found[1], int(found[2]))


HostInfo.UNAVAILABLE = HostInfo("unavailable", -1)
