"""Stores of a case (FORMAT.md, section 6): suppliers, builders and ``Materialized``."""

from __future__ import annotations

from typing import Any

from tests.conformance.api import operation, public
from tests.conformance.errors import FormatError
from tests.conformance.serdes import optional_serde
from tests.conformance.values import Json

_TIMESTAMPED = (
    "persistent_timestamped_kv",
    "in_memory_timestamped_kv",
    "lru_timestamped_kv",
    "persistent_timestamped_window",
    "in_memory_timestamped_window",
)


def supplier(spec: Json, name: str | None) -> Any:
    """Gives the store supplier of a kind."""
    kind, stores = spec["kind"], public("Stores", "pykstreams.state")

    def make(factory: str, *arguments: Any) -> Any:
        return operation(stores, factory)(name, *arguments)

    match kind:
        case "persistent_kv":
            return make("persistent_key_value_store")
        case "persistent_timestamped_kv":
            return make("persistent_timestamped_key_value_store")
        case "persistent_timestamped_kv_with_headers":
            return make("persistent_timestamped_key_value_store_with_headers")
        case "in_memory_kv" | "in_memory_timestamped_kv":
            return make("in_memory_key_value_store")
        case "lru_kv" | "lru_timestamped_kv":
            return make("lru_map", spec["max_entries"])
        case "versioned":
            segment = [spec["segment_interval_ms"]] if "segment_interval_ms" in spec else []
            return make("persistent_versioned_key_value_store", spec["history_retention_ms"], *segment)
        case "persistent_window" | "persistent_timestamped_window" | "in_memory_window":
            return make(f"{kind}_store", *_window(spec))
        case "in_memory_timestamped_window":
            return make("in_memory_window_store", *_window(spec))
        case "persistent_session" | "in_memory_session":
            return make(f"{kind}_store", spec["retention_ms"])
    raise FormatError(f"unknown store kind {kind!r}")


def _window(spec: Json) -> tuple[int, int, bool]:
    return spec["retention_ms"], spec["window_size_ms"], bool(spec.get("retain_duplicates", False))


def builder(spec: Json) -> Any:
    """Gives the store builder of a ``store`` object."""
    kind = spec["kind"]
    stamp = "timestamped_" if kind in _TIMESTAMPED else ""
    if kind == "versioned":
        factory = "versioned_key_value_store_builder"
    elif kind.endswith("_kv"):
        factory = f"{stamp}key_value_store_builder"
    elif kind.endswith("_window"):
        factory = f"{stamp}window_store_builder"
    elif kind.endswith("_session"):
        factory = "session_store_builder"
    else:
        raise FormatError(f"store kind {kind!r} has no builder")
    options = logging(spec)
    if "caching" in spec:
        options["caching"] = bool(spec["caching"])
    make = operation(public("Stores", "pykstreams.state"), factory)
    serdes = optional_serde(spec.get("key")), optional_serde(spec.get("value"))
    return make(supplier(spec, spec["name"]), *serdes, **options)


def logging(spec: Json) -> dict[str, Any]:
    """Gives the keywords for a ``logging`` field: false, true or topic settings."""
    value = spec.get("logging")
    if value is None:
        return {}
    if isinstance(value, dict):
        return {"logging": True, "topic_config": {key: str(setting) for key, setting in value.items()}}
    return {"logging": bool(value)}


def dsl_store(name: str) -> Any:
    """Gives the built-in suppliers named ``rocks_db`` or ``in_memory``."""
    if name not in ("rocks_db", "in_memory"):
        raise FormatError(f"unknown dsl store {name!r}")
    return operation(public("BuiltInDslStoreSuppliers", "pykstreams.state"), name.upper())


def materialized(spec: Json) -> Any:
    """Gives the ``Materialized`` of a step."""
    options = logging(spec)
    for field, keyword in (("key", "key_serde"), ("value", "value_serde")):
        if field in spec:
            options[keyword] = optional_serde(spec[field])
    if "caching" in spec:
        options["caching"] = bool(spec["caching"])
    if "retention_ms" in spec and "kind" not in spec:
        options["retention"] = spec["retention_ms"]
    if "dsl_store" in spec:
        options["store_type"] = dsl_store(spec["dsl_store"])
    make = public("Materialized")
    if "kind" in spec:
        return make(supplier(spec, spec.get("store")), **options)
    return make(spec["store"], **options) if spec.get("store") is not None else make(**options)


def timestamped_stores(case: Json) -> frozenset[str]:
    """Names the stores whose entries carry a timestamp.

    These are the stores of timestamped kinds and those that the DSL makes, versioned ones apart.
    """
    found: set[str] = set()

    def walk(value: Json, field: str) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item, field)
        elif isinstance(value, dict):
            if field in ("store", "provide_stores") and value.get("kind") in _TIMESTAMPED:
                found.add(value["name"])
            if field == "materialized" and "store" in value and value.get("kind") != "versioned":
                found.add(value["store"])
            for inner, content in value.items():
                walk(content, inner)

    walk(case["topology"], "topology")
    return frozenset(found)
