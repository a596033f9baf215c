"""Credentials of schema registries are in no message."""

from __future__ import annotations

import traceback

import pytest

from pykstreams.core.errors import ConfigError
from pykstreams.serdes.registry.registry_address import without_credentials
from pykstreams.serdes.registry.schema_registry import registry_client

SETTINGS = {
    "url": "https://ann:p%40ss@registry:8081",
    "basic.auth.user.info": "bob:other",
    "bearer.auth.token": "long-token",
    "ssl.ca.location": "/ca.pem",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no user bob:other", "no user ***"),
        ("password other of bob is wrong", "password *** of bob is wrong"),
        ("user ann with p@ss", "user ann with ***"),
        ("token long-token", "token ***"),
        ("GET https://eve:x@elsewhere/ failed; see /ca.pem", "GET https://elsewhere/ failed; see /ca.pem"),
    ],
)
def test_credentials_are_hidden_in_texts(text: str, shown: str) -> None:
    assert without_credentials(text, SETTINGS) == shown


@pytest.mark.parametrize(
    "registry",
    [
        {"url": "http://ann:the-secret@host", "no.such": 1},
        {"url": "http://host", "basic.auth.user.info": "ann:the-secret", "no.such": 1},
        {"url": "ftp://ann:the-secret@host"},
        "ftp://ann:the-secret@host",
        {"basic.auth.user.info": "ann:the-secret"},
    ],
)
def test_wrong_settings_are_reported_without_credentials(registry: object) -> None:
    with pytest.raises(ConfigError, match="schema registry is ") as caught:
        registry_client(registry)  # type: ignore[arg-type]

    assert "the-secret" not in "".join(traceback.format_exception(caught.value, chain=True)).split("ConfigError")[-1]
    assert "the-secret" not in f"{caught.value} {caught.value.__cause__}"
