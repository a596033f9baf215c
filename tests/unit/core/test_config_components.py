"""Class-valued settings: classes, objects, functions and 'module:attribute'."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.timestamps import FailOnInvalidTimestamp


class Serde:
    serializer = deserializer = len

    def __init__(self) -> None:
        self.configured_with: tuple[object, ...] = ()

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        self.configured_with = (configs["app.region"], is_key)


class Handler:
    region: object = None

    def configure(self, configs: Mapping[str, object]) -> None:
        self.region = configs["app.region"]

    def handle_error(self) -> None: ...


def test_a_class_is_made_into_an_object_and_configured() -> None:
    config = StreamsConfig({"app.region": "north", "default.key.serde": Serde, "default.value.serde": Serde})

    assert config.default_key_serde.configured_with == ("north", True)
    assert config.default_value_serde.configured_with == ("north", False)


def test_an_object_is_taken_as_it_is_and_configured() -> None:
    handler = Handler()
    config = StreamsConfig({"app.region": "north", "processing.exception.handler": handler})

    assert config.processing_exception_handler is handler
    assert handler.region == "north"


def test_a_function_that_gives_a_serde_is_called() -> None:
    serde = Serde()
    config = StreamsConfig({"app.region": "north", "default.key.serde": lambda: serde})

    assert config.default_key_serde is serde


def test_a_function_is_a_handler_or_an_extractor_by_itself() -> None:
    config = StreamsConfig(deserialization_exception_handler=max, default_timestamp_extractor=min)

    assert config.deserialization_exception_handler is max
    assert config.default_timestamp_extractor is min


def test_a_reference_is_imported_when_the_component_is_needed() -> None:
    config = StreamsConfig()

    assert config["default.timestamp.extractor"] == "pykstreams.core.timestamps:FailOnInvalidTimestamp"
    assert isinstance(config.default_timestamp_extractor, FailOnInvalidTimestamp)


def test_a_component_is_made_once() -> None:
    config = StreamsConfig()

    assert config.default_timestamp_extractor is config.default_timestamp_extractor


def test_a_component_that_is_not_set_is_none() -> None:
    assert StreamsConfig().rocksdb_config_setter is None


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "no_such_module:Serde",
            "setting 'default.key.serde' is 'no_such_module:Serde', which cannot be imported: "
            "No module named 'no_such_module'",
        ),
        (
            "string:Serde",
            "setting 'default.key.serde' is 'string:Serde', which cannot be imported: "
            "module 'string' has no attribute 'Serde'",
        ),
        (
            "string:digits",
            "setting 'default.key.serde' is 'string:digits', which gives '0123456789'; expected a serde",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error_when_it_is_needed(reference: str, message: str) -> None:
    config = StreamsConfig(default_key_serde=reference)

    with pytest.raises(ConfigError) as caught:
        _ = config.default_key_serde

    assert str(caught.value) == message


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_missing_default_serde_says_where_to_give_one(part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        getattr(StreamsConfig(), f"default_{part}_serde")

    assert str(caught.value) == (
        f"a step needs a {part} serde and none is set; give a type or a serde as {part}_serde in its options "
        "(Consumed, Produced, Grouped, Materialized), "
        f"or set 'default.{part}.serde'"
    )
