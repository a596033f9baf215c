"""Random programs of the Processor API: chains below a stream, and graphs of named nodes."""

from __future__ import annotations

from random import Random

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates.scenario import Input, Scenario, Template, word
from tests.conformance.templates.shapes import KEYS
from tests.conformance.values import Json

_SCANS = ("all", "reverse_all", "range", "reverse_range")
_KINDS = ("persistent", "in_memory", "lru")
_IN = {"in": Input(KEYS, word), "more": Input(KEYS, word)}


class _Draw:
    """The stores that were drawn so far, and the choice of processors over them."""

    def __init__(self, rng: Random, *, changes_headers: bool = False) -> None:
        self.rng = rng
        self.stores: dict[str, Json] = {}
        self.changes_headers = changes_headers
        """In Java all who have a record see its headers change: only chains without branch, repeat, cache do that."""

    def store(self, *, counts: bool = False) -> Json:
        """A key-value store, of which there may be one already; one of counts keeps longs."""
        fitting = [found for found in self.stores.values() if (found["value"] == "long") is counts]
        if fitting and self.rng.random() < 0.5:
            return self.rng.choice(fitting)
        rng, name = self.rng, f"kv{len(self.stores)}"
        kind = rng.choice(_KINDS)
        made: Json = {"name": name, "kind": f"{kind}_{rng.choice(['', 'timestamped_'])}kv", "key": "string"}
        made["value"] = "long" if counts else "string"
        if kind == "lru":
            made["max_entries"] = rng.choice([1, 2, 10])
        else:
            made["caching"] = rng.random() < 0.4 and not self.changes_headers
        if rng.random() < 0.2:
            made["logging"] = False
        self.stores[name] = made
        return made

    def processor(
        self, *, children: list[str], fixed_key: bool = False, is_last: bool = False
    ) -> tuple[Json, list[Json]]:
        """A processor with the stores it uses; only the last may scan, since values would grow without end."""
        rng = self.rng
        name = rng.choice(
            ["forward", "map", "header_to_value", "set_timestamp"]
            + (["header_add", "header_remove"] * 2 if self.changes_headers else ["repeat"])
            + ["metadata_to_value", "times_to_value", "throw_if", "record_call"]
            + ["kv_put", "kv_put", "kv_put_if_absent", "kv_delete", "kv_get", "dedup"]
            + ([] if fixed_key else ["tick", "tick", "buffer", "buffer"])
            + (["kv_scan"] * 8 if is_last else [])
            + (["forward_to"] * 4 if children else [])
        )
        made: Json = {"name": name}
        used = [self.store()] if name.startswith("kv_") or name in ("dedup", "buffer") else []
        if used:
            made["store"] = used[0]["name"]
        match name:
            case "repeat":
                made["times"] = rng.choice([0, 2])
            case "map":
                made["value"] = rng.choice([["show", "upper"], ["key"], ["concat_key:-"], ["null"]])
                if not fixed_key and rng.random() < 0.5:
                    made["key"] = rng.choice([["value", "or_else:n"], ["key", "or_else:n", "upper"]])
            case "header_add" | "header_remove" | "header_to_value":
                made["header"] = rng.choice(["h", "g"])
                if name == "header_add":
                    made["value"] = rng.choice(["x", None])
            case "set_timestamp":
                made.update({"to": rng.randint(0, 60)} if rng.random() < 0.5 else {"delta": rng.randint(0, 9)})
            case "throw_if":
                made |= {"when": f"value_eq:{word(rng)}", "message": "no"}
            case "tick" | "buffer":
                made["interval_ms"] = rng.choice([1, 5, 10, 17])
                made["type"] = rng.choice(["stream_time", "wall_clock_time"])
                if name == "tick" and rng.random() < 0.4:
                    made["start_ms"] = rng.randint(0, 60)
                if name == "tick" and rng.random() < 0.4:
                    made["cancel_after"] = rng.randint(1, 3)
            case "kv_put":
                made["forward"] = rng.choice(["new", "old", "old", "none"])
            case "kv_scan":
                # backwards over a cache Java gives rows that were deleted, with null (docs/reference/differences.md)
                made["scan"] = rng.choice(["all", "range"] if used[0].get("caching") else _SCANS)
                if made["scan"].endswith("range"):
                    made |= {"from": "a", "to": "b"}
            case "forward_to":
                made["child"] = rng.choice(children)
                made["when"] = rng.choice([f"value_eq:{word(rng)}", "key_eq:a", "true"])
                if rng.random() < 0.6:
                    made["else"] = rng.choice(children)
        return made, used

    def scenario(self, topology: list[Step]) -> Scenario:
        """A scenario around the topology."""
        rng = self.rng
        queries = [query(name, "all") for name in self.stores]
        continues = rng.random() < 0.8
        return Scenario(
            topology,
            {topic: drawn for topic, drawn in _IN.items() if any(topic in _topics(made) for made in topology)},
            null_keys=0.05 if continues else 0,
            clock=0.2,
            headers=0.3,
            queries=queries,
            config={"processing.exception.handler": "log_and_continue"} if continues else {},
            cache=rng.choice([0, 0, 10_000]),
        )


def _topics(made: Step) -> list[str]:
    return made.get("topics") or [made.get("topic")]


def _chain(rng: Random) -> Scenario:
    """Streams with processors one below the other, some with stores that their suppliers bring."""
    linear = rng.random() < 0.3
    draw = _Draw(rng, changes_headers=linear)
    added: list[Step] = []
    steps = [step("s", "stream", topic="in")]
    on, ends = "s", []
    length = rng.randint(1, 5)
    for number in range(length):
        fixed_key = rng.random() < 0.4
        before = set(draw.stores)
        processor, used = draw.processor(children=[], fixed_key=fixed_key, is_last=number == length - 1)
        connected = [store["name"] for store in used]
        if used and connected[0] not in before:
            if rng.random() < 0.3:
                processor["provide_stores"], connected = used, []
            else:
                added.append(step(f"st{number}", "add_state_store", store=used[0]))
        if draw.stores and rng.random() < 0.2:
            more = rng.choice(sorted(draw.stores))
            if more not in connected and "provide_stores" not in processor:
                connected = [*connected, more]
        made = step(f"p{number}", "process_values" if fixed_key else "process", on, processor=processor)
        if connected:
            made["stores"] = connected
        if rng.random() < 0.3:
            made["named"] = f"named-{number}"
        steps.append(made)
        ends.append(made["id"])
        if linear or rng.random() < 0.8:
            on = made["id"]
    for number, end in enumerate(ends):
        if end == on or (not linear and rng.random() < 0.7):
            steps.append(step(f"to{number}", "to", end, topic=rng.choice(["out", f"out{number}"])))
    return draw.scenario([*added, *steps])


def _graph(rng: Random) -> Scenario:
    """Named nodes with one or several parents; some processors choose the child they forward to."""
    draw = _Draw(rng)
    sources = ["in", "more"][: rng.randint(1, 2)]
    steps = [step(f"s-{topic}", "add_source", name=f"from-{topic}", topics=[topic]) for topic in sources]
    count = rng.randint(2, 6)
    parents: dict[int, list[str]] = {}
    children: dict[str, list[str]] = {}
    for number in range(count + 2):  # the last two are sinks
        known = [f"from-{topic}" for topic in sources] + [f"p{earlier}" for earlier in range(min(number, count))]
        wanted = rng.sample(known, min(len(known), rng.choice([1, 1, 2])))
        parents[number] = wanted
        for parent in wanted:
            children.setdefault(parent, []).append(f"p{number}")
    late: list[Step] = []
    for number in range(count):
        name = f"p{number}"
        below = children.get(name, [])
        is_last = all(child in (f"p{count}", f"p{count + 1}") for child in below)
        processor, used = draw.processor(children=below, is_last=is_last)
        steps.append(step(name, "add_processor", name=name, processor=processor, parents=parents[number]))
        late += [step(f"c{number}", "connect", processor=name, stores=[store["name"]]) for store in used]
    for number in (count, count + 1):
        made = step(f"p{number}", "add_sink", name=f"p{number}", topic=f"out{number % 2}", parents=parents[number])
        steps.append(made | {"key": "string", "value": "string"})
    stores = [step(f"st-{name}", "add_state_store", store=store, processors=[]) for name, store in draw.stores.items()]
    return draw.scenario([*steps, *stores, *late])


TEMPLATES: dict[str, Template] = {
    "processor_chain": Template("processor", 2, _chain),
    "processor_graph": Template("processor", 2, _graph),
}
