"""Class-valued settings: classes, objects, functions and 'module:attribute'."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.handlers import (
    DeserializationExceptionHandler,
    ErrorHandlerContext,
    ErrorHandlerResponse,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    ProcessingExceptionHandler,
)
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


class Skips(LogAndContinueExceptionHandler):
    """A handler for records that cannot be read."""


@pytest.mark.parametrize("handler", [Skips, Skips()], ids=["class", "object"])
@pytest.mark.parametrize("setting", ["processing.exception.handler", "production.exception.handler"])
def test_a_handler_of_another_kind_is_refused(setting: str, handler: object) -> None:
    with pytest.raises(ConfigError, match=rf"{setting}.*Skips.*expected a {setting.split('.')[0]} exception handler"):
        StreamsConfig({setting: handler})


def test_a_handler_of_two_kinds_fits_both_settings() -> None:
    class Both(DeserializationExceptionHandler, ProcessingExceptionHandler):
        def handle_error(self, context: ErrorHandlerContext, given: object, error: Exception) -> ErrorHandlerResponse:
            return ErrorHandlerResponse.resume()

    StreamsConfig(deserialization_exception_handler=Both, processing_exception_handler=Both())


def test_a_reference_to_a_handler_of_another_kind_is_refused_before_the_start() -> None:
    config = StreamsConfig({"deserialization.exception.handler": f"{__name__}:ContinuesProcessing"})

    with pytest.raises(ConfigError, match=r"ContinuesProcessing.*expected a deserialization exception handler"):
        config.check_references()


class ContinuesProcessing(LogAndContinueProcessingExceptionHandler):
    """A handler for records whose processing failed."""


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
            "No module named 'no_such_module'; correct it, or install the module where the application runs",
        ),
        (
            "string:Serde",
            "setting 'default.key.serde' is 'string:Serde', which cannot be imported: "
            "module 'string' has no attribute 'Serde'; correct it, or install the module where the application runs",
        ),
        (
            "string:digits",
            "setting 'default.key.serde' is 'string:digits', which gives '0123456789'; expected a serde "
            "(that of a type is Serdes.for_type(...))",
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


class NeedsAnArgument:
    """A handler that nobody can make."""

    def __init__(self, topic: str) -> None: ...

    def handle(self, context: object, record: object, error: Exception) -> None: ...


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        ({"processing.exception.handler": "nomod:Nope"}, ["No module named 'nomod'; correct it"]),
        (
            {"metric.reporters": "nomod:One,string:digits"},
            ["No module named 'nomod'", "which gives '0123456789'; expected a"],
        ),
        ({"consumer.oauth_cb": "nomod:token"}, ["setting 'consumer.oauth_cb' is 'nomod:token', which cannot"]),
        ({"stats_cb": "string:digits"}, ["expected something that can be called"]),
        ({"processing.exception.handler": NeedsAnArgument}, ["missing a required argument: 'topic'"]),
        ({"default.key.serde": "pykstreams.serdes:StringSerde", "app.serde": "nomod:Nope"}, []),
        ({"default.key.serde": "pykstreams.serdes:StringSerde", "logger": "logging:root"}, []),
    ],
)
def test_all_references_are_checked_without_making_anything(settings: dict[str, object], messages: list[str]) -> None:
    config = StreamsConfig(settings)
    if not messages:
        config.check_references()
        return

    with pytest.raises(ConfigError) as caught:
        config.check_references()

    assert [message for message in messages if message not in str(caught.value)] == []


def test_module_that_raises_is_told_with_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unfinished_handlers.py").write_text("raise KeyError('PASSWORD')")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigError) as caught:
        StreamsConfig({"processing.exception.handler": "unfinished_handlers:Handler"}).check_references()

    assert "whose module raised KeyError while it was imported: 'PASSWORD'; correct the module" in str(caught.value)
