"""The option objects of FORMAT.md, section 5, as pykstreams' option classes."""

from __future__ import annotations

from typing import Any

from tests.conformance import functions, stores
from tests.conformance.api import operation, public
from tests.conformance.errors import FormatError
from tests.conformance.serdes import optional_serde
from tests.conformance.values import Json

_SERDES = {"key": "key_serde", "value": "value_serde", "other_value": "other_value_serde"}


def _serdes(spec: Json) -> dict[str, Any]:
    return {keyword: optional_serde(spec[field]) for field, keyword in _SERDES.items() if field in spec}


def _copied(spec: Json, **fields: str) -> dict[str, Any]:
    return {keyword: spec[field] for field, keyword in fields.items() if field in spec}


def _partitioner(spec: Json, field: str = "partitioner") -> dict[str, Any]:
    return {field: functions.partitioner(spec[field])} if field in spec else {}


def offset_reset(spec: str) -> Any:
    """Gives the reset policy ``earliest``, ``latest``, ``none`` or ``by_duration:<ms>``."""
    kind, _, duration = spec.partition(":")
    policies = public("AutoOffsetReset")
    if kind in ("earliest", "latest", "none"):
        return operation(policies, kind.upper())
    if kind == "by_duration":
        return policies.by_duration(int(duration))
    raise FormatError(f"unknown offset reset {spec!r}")


def consumed(spec: Json) -> Any:
    """``consumed``."""
    options = _serdes(spec) | _copied(spec, name="name")
    if "timestamp_extractor" in spec:
        options["timestamp_extractor"] = functions.timestamp_extractor(spec["timestamp_extractor"])
    if "offset_reset" in spec:
        options["offset_reset_policy"] = offset_reset(spec["offset_reset"])
    return public("Consumed")(**options)


def produced(spec: Json) -> Any:
    """``produced``."""
    return public("Produced")(**_serdes(spec), **_copied(spec, name="name"), **_partitioner(spec))


def grouped(spec: Json) -> Any:
    """``grouped``."""
    return public("Grouped")(**_serdes(spec), **_copied(spec, name="name"))


def repartitioned(spec: Json) -> Any:
    """``repartitioned``."""
    return public("Repartitioned")(
        **_serdes(spec), **_copied(spec, name="name", partitions="num_partitions"), **_partitioner(spec)
    )


def joined(spec: Json) -> Any:
    """``joined``."""
    return public("Joined")(**_serdes(spec), **_copied(spec, name="name", grace_ms="grace_period"))


def stream_joined(spec: Json) -> Any:
    """``stream_joined``."""
    options = _serdes(spec) | _copied(spec, name="name", store_name="store_name") | stores.logging(spec)
    if "dsl_store" in spec:
        options["dsl_store_suppliers"] = stores.dsl_store(spec["dsl_store"])
    for field in ("this_store", "other_store"):
        if field in spec:
            options[f"{field}_supplier"] = stores.supplier(spec[field], spec[field].get("name"))
    return public("StreamJoined")(**options)


def table_joined(spec: Json) -> Any:
    """``table_joined``."""
    partitioners = _partitioner(spec) | _partitioner(spec, "other_partitioner")
    return public("TableJoined")(**partitioners, **_copied(spec, name="name"))


def suppressed(step: Json) -> Any:
    """The ``until``, ``time_limit_ms``, ``buffer`` and ``named`` of a ``suppress`` step."""
    buffer = step.get("buffer") or {}
    options = _copied(buffer, max_records="max_records", max_bytes="max_bytes") | stores.logging(buffer)
    if "when_full" in buffer:
        strategies = public("BufferFullStrategy")
        options["when_full"] = strategies.SHUT_DOWN if buffer["when_full"] == "shut_down" else strategies.EMIT_EARLY
    config = public("BufferConfig")(**options)
    name = _copied(step, named="name")
    match step["until"]:
        case "window_closes":
            return public("Suppressed").until_window_closes(config, **name)
        case "time_limit":
            return public("Suppressed").until_time_limit(step["time_limit_ms"], config, **name)
    raise FormatError(f"suppress until {step['until']!r}")


def windows(spec: Json) -> Any:
    """The windows of ``windowed_by``."""
    grace = _copied(spec, grace_ms="grace")
    match spec["type"]:
        case "time":
            return public("TimeWindows")(spec["size_ms"], **_copied(spec, advance_ms="advance_by"), **grace)
        case "sliding":
            return public("SlidingWindows")(spec["difference_ms"], **grace)
        case "session":
            return public("SessionWindows")(spec["gap_ms"], **grace)
        case "unlimited":
            return public("UnlimitedWindows")(*([spec["start_ms"]] if "start_ms" in spec else []))
    raise FormatError(f"unknown windows {spec!r}")


def join_windows(spec: Json) -> Any:
    """The windows of a stream-stream join."""
    bounds = _copied(spec, before_ms="before", after_ms="after", grace_ms="grace")
    return public("JoinWindows")(spec.get("difference_ms", 0), **bounds)


def emit_strategy(name: str) -> Any:
    """The strategy of ``emit_strategy``."""
    if name not in ("on_window_close", "on_window_update"):
        raise FormatError(f"unknown emit strategy {name!r}")
    return operation(public("EmitStrategy"), name.upper())
