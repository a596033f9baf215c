"""The settings on the page about secured brokers are settings, and the secrets among them stay secret."""

from __future__ import annotations

import pytest

from pykstreams.cli.settings import read_properties
from pykstreams.core.config import StreamsConfig
from tests.docs.pages import Page

PAGE = Page("docs/guides/security.md")
EXAMPLES = [dict(read_properties(block.text)) for block in PAGE.of("properties")]
SECRET = "opensesame"


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES, ids=["password", "certificates"])
def test_every_client_gets_the_settings_of_an_example(example: dict[str, str]) -> None:
    config = StreamsConfig({"application.id": "shop", "bootstrap.servers": "one:1", **example})
    for client in (
        config.get_main_consumer_configs("shop", "c", 1),
        config.get_restore_consumer_configs("c"),
        config.get_global_consumer_configs("c"),
        config.get_producer_configs("c"),
        config.get_admin_configs("c"),
    ):
        assert {name: client[name] for name in example} == example


@pytest.mark.parametrize("example", EXAMPLES, ids=["password", "certificates"])
def test_a_configuration_shows_no_secret(example: dict[str, str]) -> None:
    config = StreamsConfig({"application.id": "shop", "bootstrap.servers": "one:1", **example})
    for text in (repr(config), str(config), f"{config}"):
        assert SECRET not in text
