"""Settings in messages: those that hold secrets are stars."""

from __future__ import annotations

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.settings.parsing import is_secret
from pykstreams.serdes.registry.registry_address import shown_settings


@pytest.mark.parametrize(
    "name", ["SASL.Password", "app.Db.PASSWORD", "app.some-token", "app.api_token", "App.Client.Secret", "ssl.Key.Pem"]
)
def test_secrets_are_known_by_their_names_in_any_letters(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["sasl.oauthbearer.token.endpoint.url", "app.region", "ssl.ca.location"])
def test_other_settings_are_shown(name: str) -> None:
    assert not is_secret(name)


def test_tokens_of_the_user_are_not_shown_with_the_settings() -> None:
    config = StreamsConfig({"application.id": "a", "bootstrap.servers": "b:9092", "app.some-token": "hidden-text"})

    assert "hidden-text" not in repr(config)


def test_settings_of_registries_are_hidden_in_any_letters() -> None:
    assert shown_settings({"Basic.Auth.User.Info": "ann:hidden"}) == "{'Basic.Auth.User.Info': '***'}"
