"""Schema registries in messages: where they are, and never with what they are asked.

Settings of ``SchemaRegistryClient`` hold credentials in values of their own, and in front of the host of a URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

_SECRET = re.compile(r"user\.info|token$|secret|password", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
_STARS = "***"


def shown_registry(settings: Mapping[str, object]) -> str:
    """Returns the URL of a registry, or its URLs, without user and password.

    >>> shown_registry({"url": "https://ann:secret@registry:8081"})
    'https://registry:8081'
    """
    return _USER_INFO.sub("", str(settings.get("url")))


def shown_settings(settings: Mapping[str, object]) -> str:
    """Returns settings as they were given, with stars for credentials.

    >>> shown_settings({"url": "http://registry", "basic.auth.user.info": "ann:secret"})
    "{'url': 'http://registry', 'basic.auth.user.info': '***'}"
    """
    return repr({name: _STARS if _SECRET.search(name) else _plain(value) for name, value in settings.items()})


def without_credentials(text: str, settings: Mapping[str, object]) -> str:
    """Returns a text, such as what a library says of an error, with stars for credentials of these settings.

    >>> without_credentials("no user ann:secret", {"url": "http://registry", "basic.auth.user.info": "ann:secret"})
    'no user ***'
    """
    for secret in sorted(_secrets(settings), key=len, reverse=True):
        text = text.replace(secret, _STARS)
    return _USER_INFO.sub("", text)


def _plain(value: object) -> object:
    return _USER_INFO.sub("", value) if isinstance(value, str) else value


def _secrets(settings: Mapping[str, object]) -> Iterator[str]:
    """Yields credentials, and passwords of those that are a user with a password."""
    for name, value in settings.items():
        if not isinstance(value, str):
            continue
        found = [value] if _SECRET.search(name) else [one[:-1] for one in _USER_INFO.findall(value)]
        for one in (*found, *map(unquote, found)):
            yield from (part for part in (one, one.partition(":")[2]) if part)
