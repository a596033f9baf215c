"""What a registry over HTTP says of the schemas of serdes, and that asking changes nothing there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pykstreams.serdes import (
    CombinedKeySerde,
    ListSerde,
    OptionalSerde,
    SchemaRegistryAvroSerde,
    SchemaRegistryJsonSerde,
    SchemaRegistryProtobufSerde,
    Serdes,
    SessionWindowedSerde,
    TimeWindowedSerde,
)
from pykstreams.serdes.registry.first_requests import Wanted, registry_serdes
from pykstreams.serdes.registry.subject_answers import Outcome, RegistryDownError, SubjectAnswer, answer, requests
from pykstreams.serdes.told_topic import ToldTopic
from tests.registries.http_registry import HttpRegistry, http_registry
from tests.registries.messages import order_class

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}],
}
WIDER_AVRO: dict[str, Any] = {**AVRO, "fields": [*AVRO["fields"], {"name": "note", "type": "string"}]}
JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
NO_DEFAULT = "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field note has no default'}"

MakeSerde = Callable[..., Any]


def avro(registry: Any, **settings: object) -> Any:
    return SchemaRegistryAvroSerde(registry, AVRO, serializer_config=settings)


def json_serde(registry: Any, **settings: object) -> Any:
    return SchemaRegistryJsonSerde(registry, JSON, serializer_config=settings)


def protobuf(registry: Any, **settings: object) -> Any:
    return SchemaRegistryProtobufSerde(registry, order_class(), serializer_config=settings)


FORMATS = pytest.mark.parametrize("make", [avro, json_serde, protobuf])


@pytest.fixture
def registry() -> Iterator[HttpRegistry]:
    with http_registry() as found:
        yield found


def answers(serde: object, topic: str = "orders") -> dict[str, SubjectAnswer]:
    """What is said of the subjects that a serde writes to."""
    ((found, told),) = registry_serdes(serde, topic)
    asked = requests(found, told)
    if isinstance(asked, SubjectAnswer):
        return {"?": asked}
    return {one.subject: answer(found.client, one) for one in asked}


@FORMATS
def test_a_subject_that_there_is_not_yet_is_new(make: MakeSerde, registry: HttpRegistry) -> None:
    found = answers(make(registry.settings()))

    assert {subject: one.outcome for subject, one in found.items()} == {"orders-value": Outcome.NEW_SUBJECT}
    assert not registry.is_changed()


@FORMATS
def test_a_schema_that_the_serde_has_registered_is_told_with_its_id(make: MakeSerde, registry: HttpRegistry) -> None:
    """The serde writes a record first, so what is looked up is what a serializer registers, byte for byte."""
    registry.register("other-value", '"string"')
    value = order_class()(id=5) if make is protobuf else {"id": 5}
    make(registry.settings()).serialize("orders", value)
    registry.asked.clear()

    assert answers(make(registry.settings())) == {
        "orders-value": SubjectAnswer(Outcome.REGISTERED, version=1, schema_id=2)
    }
    assert not registry.is_changed()


@FORMATS
def test_a_compatible_schema_would_be_a_new_version(make: MakeSerde, registry: HttpRegistry) -> None:
    registry.register("orders-value", '"string"')

    assert answers(make(registry.settings()))["orders-value"].outcome is Outcome.NEW_VERSION
    assert not registry.is_changed()


@FORMATS
def test_an_incompatible_schema_is_told_with_the_reasons_of_the_registry(
    make: MakeSerde, registry: HttpRegistry
) -> None:
    registry.register("orders-value", '"string"')
    registry.refusals["orders-value"] = [NO_DEFAULT, "{oldSchemaVersion: 1}"]
    registry.levels["orders-value"] = "FULL_TRANSITIVE"

    assert answers(make(registry.settings())) == {
        "orders-value": SubjectAnswer(
            Outcome.INCOMPATIBLE,
            "the registry would refuse the schema: compatibility is FULL_TRANSITIVE",
            "change the schema as FULL_TRANSITIVE allows, or write to a new topic",
            (NO_DEFAULT, "{oldSchemaVersion: 1}"),
        )
    }
    assert not registry.is_changed()


def test_the_level_of_the_whole_registry_counts_for_a_subject_without_its_own(registry: HttpRegistry) -> None:
    registry.register("orders-value", '"string"')
    registry.refusals["orders-value"] = [NO_DEFAULT]

    assert "compatibility is BACKWARD" in answers(avro(registry.settings()))["orders-value"].what


def test_the_level_of_all_is_not_asked_for_where_a_subject_has_its_own(registry: HttpRegistry) -> None:
    """It may need a right that the client has not."""
    registry.register("orders-value", '"string"')
    registry.refusals["orders-value"] = [NO_DEFAULT]
    registry.levels["orders-value"] = "FULL"

    assert "compatibility is FULL" in answers(avro(registry.settings()))["orders-value"].what
    assert "GET /config" not in registry.asked


def test_the_level_none_is_not_said_of_a_subject_that_refuses_a_schema(registry: HttpRegistry) -> None:
    """Apicurio Registry gives it for every subject that follows the level of the whole registry (3.0.9)."""
    registry.register("orders-value", '"string"')
    registry.refusals["orders-value"] = [NO_DEFAULT]
    registry.levels["orders-value"] = "NONE"

    assert "compatibility is BACKWARD" in answers(avro(registry.settings()))["orders-value"].what

    registry.levels[""] = "NONE"
    found = answers(avro(registry.settings()))["orders-value"]
    assert (found.what, found.cure) == (
        "the registry would refuse the schema",
        "change the schema as the compatibility of the subject allows, or write to a new topic",
    )


@FORMATS
def test_a_schema_that_the_serde_may_not_register_must_be_there(make: MakeSerde, registry: HttpRegistry) -> None:
    serde = make(registry.settings(), **{"auto.register.schemas": False})

    assert answers(serde) == {
        "orders-value": SubjectAnswer(
            Outcome.NOT_REGISTERED,
            "the serde does not register its schema (auto.register.schemas=false)",
            "register it before",
        )
    }


@FORMATS
def test_a_schema_that_the_serde_may_not_register_is_found(make: MakeSerde, registry: HttpRegistry) -> None:
    value = order_class()(id=5) if make is protobuf else {"id": 5}
    make(registry.settings()).serialize("orders", value)

    found = answers(make(registry.settings(), **{"auto.register.schemas": False}))

    assert found == {"orders-value": SubjectAnswer(Outcome.REGISTERED, version=1, schema_id=1)}


@FORMATS
def test_the_latest_version_is_told_where_the_serde_takes_it(make: MakeSerde, registry: HttpRegistry) -> None:
    serde = make(registry.settings(), **{"auto.register.schemas": False, "use.latest.version": True})
    before = answers(serde)["orders-value"]
    registry.register("orders-value", '"string"')
    registry.register("orders-value", '"long"')

    assert (before.outcome, before.what) == (
        Outcome.NOT_REGISTERED,
        "there is no schema that use.latest.version could take",
    )
    assert answers(serde)["orders-value"] == SubjectAnswer(
        Outcome.AS_SET, "use.latest.version; the schema of the serde is not compared", version=2, schema_id=2
    )


def test_the_schema_of_an_id_is_told_where_the_serde_takes_it(registry: HttpRegistry) -> None:
    serde = avro(registry.settings(), **{"auto.register.schemas": False, "use.schema.id": 1})
    before = answers(serde)["orders-value"].outcome
    registry.register("elsewhere", '"string"')

    assert (before, answers(serde)["orders-value"].outcome) == (Outcome.NOT_REGISTERED, Outcome.AS_SET)


def test_a_serde_without_schema_has_nothing_to_write_with(registry: HttpRegistry) -> None:
    found = answers(SchemaRegistryAvroSerde(registry.settings()))["orders-value"]

    assert (found.outcome, found.what) == (Outcome.NOT_REGISTERED, "the serde has no schema to write with")


def test_refused_credentials_are_told_and_not_shown(registry: HttpRegistry) -> None:
    registry.users["ann"] = "right"
    serde = avro(registry.settings(basic_auth_user_info="ann:wrong-password"))

    found = answers(serde)["orders-value"]

    assert (found.outcome, found.what) == (
        Outcome.NOT_ASKED,
        "the registry refuses the credentials (HTTP 401: Unauthorized)",
    )
    assert "wrong-password" not in str(found)


@FORMATS
@pytest.mark.parametrize("auto_register", [True, False])
def test_the_subject_is_told_whatever_the_registry_refuses(
    make: MakeSerde, auto_register: bool, registry: HttpRegistry
) -> None:
    registry.users["ann"] = "right"

    found = answers(make(registry.settings(), **{"auto.register.schemas": auto_register}))

    assert {subject: one.outcome for subject, one in found.items()} == {"orders-value": Outcome.NOT_ASKED}


def test_a_registry_that_failed_once_is_not_trusted_to_have_told_all(registry: HttpRegistry) -> None:
    """Behind the imported file the schema itself would have been looked up."""
    order: Any = order_class(imports_customer=True)
    SchemaRegistryProtobufSerde(registry.settings(), order).serialize("orders", order(id=5))
    settings = {"auto.register.schemas": False}
    serde: Any = SchemaRegistryProtobufSerde(registry.settings(), order, serializer_config=settings)
    ((found, told),) = registry_serdes(serde, "orders")
    registry.fails_with = 500, {"error_code": 50001, "message": "out of memory"}
    asked = requests(found, told)
    registry.fails_with = None

    assert isinstance(asked, list)
    assert [(one.subject, answer(found.client, one).outcome) for one in asked] == [
        ("shop/customer.proto", Outcome.NOT_ASKED)
    ]


def test_right_credentials_are_used(registry: HttpRegistry) -> None:
    registry.users["ann"] = "right"
    registry.register("orders-value", '"string"')
    registry.refusals["orders-value"] = [NO_DEFAULT]

    found = answers(avro(registry.settings(basic_auth_user_info="ann:right")))["orders-value"]

    assert found.reasons == (NO_DEFAULT,)


def test_what_a_registry_repeats_of_credentials_is_hidden(registry: HttpRegistry) -> None:
    registry.fails_with = 500, {"error_code": 50001, "message": "user ann:secret-word, secret-word"}

    found = answers(avro(registry.settings(basic_auth_user_info="ann:secret-word")))["orders-value"]

    assert found.what == "the registry fails (HTTP 500: user ***, ***)"


def test_a_schema_that_is_none_for_the_registry_is_incompatible(registry: HttpRegistry) -> None:
    registry.fails_with = 422, {"error_code": 42201, "message": "Invalid schema"}

    found = answers(avro(registry.settings()))["orders-value"]

    assert (found.outcome, found.reasons) == (Outcome.INCOMPATIBLE, ("Invalid schema",))


def test_a_server_that_is_no_registry_is_not_taken_for_one_without_subjects(registry: HttpRegistry) -> None:
    registry.fails_with = 404, {"error": "there is no such page"}

    found = answers(avro(registry.settings()))["orders-value"]

    assert (found.outcome, found.cure) == (Outcome.NOT_ASKED, "see whether its URL is right, and its log")


def test_a_registry_that_does_not_answer_is_told_as_such() -> None:
    with http_registry() as registry:
        settings = registry.settings()

    with pytest.raises(RegistryDownError, match="ConnectError"):
        answers(avro(settings))


@pytest.mark.parametrize(
    ("settings", "subject"),
    [
        ({}, "orders-value"),
        ({"subject.name.strategy.type": "TOPIC"}, "orders-value"),
        ({"subject.name.strategy.type": "RECORD"}, "shop.Order"),
        ({"subject.name.strategy.type": "topic_record"}, "orders-shop.Order"),
        ({"subject.name.strategy": lambda context, record: f"{context.field} of {record}"}, "value of shop.Order"),
    ],
)
def test_subjects_follow_the_strategy_of_the_serializer(
    settings: dict[str, object], subject: str, registry: HttpRegistry
) -> None:
    registry.register(subject, json.dumps(WIDER_AVRO))

    assert {name: one.outcome for name, one in answers(avro(registry.settings(), **settings)).items()} == {
        subject: Outcome.NEW_VERSION
    }


@pytest.mark.parametrize(("make", "name"), [(json_serde, "Order"), (protobuf, "shop.Order")])
def test_records_have_the_name_that_their_format_gives_them(make: MakeSerde, name: str, registry: HttpRegistry) -> None:
    assert list(answers(make(registry.settings(), **{"subject.name.strategy.type": "RECORD"}))) == [name]


def test_a_strategy_that_fails_is_told(registry: HttpRegistry) -> None:
    def fails(context: object, record: str) -> str:
        raise LookupError(record)

    found = answers(avro(registry.settings(), **{"subject.name.strategy": fails}))["?"]

    assert (found.outcome, found.what) == (
        Outcome.NOT_ASKED,
        "the serializer asks for no subject: LookupError: shop.Order",
    )


def test_wrong_settings_of_a_serializer_are_told(registry: HttpRegistry) -> None:
    found = answers(avro(registry.settings(), **{"no.such": 1}))["?"]

    assert "SchemaRegistryAvroSerde cannot be made: ValueError: Unrecognized" in found.what


def test_imported_files_are_subjects_too(registry: HttpRegistry) -> None:
    serde = SchemaRegistryProtobufSerde(registry.settings(), order_class(imports_customer=True))
    registry.register("orders-value", "anything", "PROTOBUF")

    found = answers(serde)

    assert {subject: one.outcome for subject, one in found.items()} == {
        "shop/customer.proto": Outcome.NEW_SUBJECT,
        "orders-value": Outcome.NOT_CHECKED,
    }
    assert found["orders-value"].what == "the schema imports what is not registered yet: shop/customer.proto"
    assert not registry.is_changed()


def test_references_are_those_that_the_serializer_registers(registry: HttpRegistry) -> None:
    order: Any = order_class(imports_customer=True)
    SchemaRegistryProtobufSerde(registry.settings(), order).serialize("orders", order(id=5))

    found = answers(SchemaRegistryProtobufSerde(registry.settings(), order))

    assert {subject: (one.outcome, one.schema_id) for subject, one in found.items()} == {
        "shop/customer.proto": (Outcome.REGISTERED, 1),
        "orders-value": (Outcome.REGISTERED, 2),
    }


def test_an_imported_file_that_the_serde_may_not_register_must_be_there(registry: HttpRegistry) -> None:
    settings = {"auto.register.schemas": False}
    serde = SchemaRegistryProtobufSerde(
        registry.settings(), order_class(imports_customer=True), serializer_config=settings
    )

    assert {subject: one.outcome for subject, one in answers(serde).items()} == {
        "shop/customer.proto": Outcome.NOT_REGISTERED
    }


@FORMATS
def test_a_registry_in_memory_answers_too(make: MakeSerde) -> None:
    serde, other = make("mock://answers"), SchemaRegistryAvroSerde[Any]("mock://answers", WIDER_AVRO)
    before = answers(serde)["orders-value"].outcome
    other.serialize("orders", {"id": 1, "note": "x"})

    assert before is Outcome.NEW_SUBJECT
    assert answers(serde)["orders-value"] == SubjectAnswer(Outcome.NEW_VERSION, "a registry in memory takes any schema")


@pytest.mark.parametrize(
    ("wrap", "told"),
    [
        (lambda serde: serde, "orders"),
        (lambda serde: TimeWindowedSerde(serde, 5), "orders"),
        (lambda serde: TimeWindowedSerde(serde, 5).serializer, "orders"),
        (SessionWindowedSerde, "orders"),
        (ListSerde, "orders"),
        (lambda serde: OptionalSerde(ListSerde(serde)), "orders"),
        (lambda serde: CombinedKeySerde(Serdes.string(), serde), "orders"),
        (lambda serde: CombinedKeySerde(serde, Serdes.string()), "orders"),
        (lambda serde: ToldTopic(serde, "orders-join", "-fk"), "orders-join-fk"),
        (lambda serde: Serdes.from_functions(serde, serde), "orders"),
    ],
)
def test_serdes_inside_others_are_found_with_the_topic_that_they_are_told(
    wrap: Callable[[Any], object], told: str
) -> None:
    serde = avro("mock://inside")

    ((found, topic),) = registry_serdes(wrap(serde), "orders")

    (asked,) = found.first_requests(topic)
    assert (topic, asked.wanted, asked.subject) == (told, Wanted.REGISTER, f"{told}-value")


def test_serdes_that_are_looked_for_write_as_before() -> None:
    serde = avro("mock://looked-for")
    registry_serdes(serde, "orders")

    assert serde.deserialize("orders", serde.serialize("orders", {"id": 5})) == {"id": 5}
    assert registry_serdes(Serdes.string(), "orders") == []
