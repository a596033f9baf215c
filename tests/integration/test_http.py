"""Instances over HTTP on a real broker: any of them answers for any key, also while an owner is away."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.brokers.ports import free_ports_in_a_row
from tests.integration.instances import (
    PARTITIONS,
    Instances,
    Orders,
    Question,
    get,
    listening,
    questions,
    sources,
    wait_until,
    whole_ranges,
    with_query,
)

pytestmark = pytest.mark.slow

KEYS = [f"key-{number:02}" for number in range(12)]
RECORDS = 7

Make = Callable[..., tuple[Instances, Orders]]


@pytest.fixture
def make(
    bootstrap_servers: str, make_name: Callable[[str], str], make_topic: Callable[..., str], tmp_path: Path
) -> Iterator[Make]:
    """Makes three instances, one of two processes, and gives them records."""
    made: list[Instances] = []

    def build(**settings: object) -> tuple[Instances, Orders]:
        topic = make_topic("orders", partitions=PARTITIONS)
        instances = Instances(bootstrap_servers, make_name("shop"), topic, tmp_path, settings)
        made.append(instances)
        orders = Orders(bootstrap_servers, topic, KEYS)
        for _ in range(RECORDS):
            orders.write(KEYS)
        assert {orders.partition(key) for key in KEYS} == set(range(PARTITIONS))
        port = free_ports_in_a_row(4)
        instances.start("one", port, workers=2)  # two processes, at two ports
        instances.start("two", port + 2)
        instances.start("three", port + 3)
        instances.wait_until_settled(orders)
        instances.wait_until_current(orders)
        return instances, orders

    yield build
    for one in made:
        one.end()


def test_any_instance_answers_for_any_key_and_copies_when_its_owner_is_killed(make: Make) -> None:
    instances, orders = make(**{"consumer.session.timeout.ms": 60_000})  # nobody takes over from the one that is killed
    every = [question for key in KEYS for question in questions(orders, key)]

    for port in instances.running:
        for question in every + whole_ranges(orders):
            body = answered(port, question)
            assert {source["role"] for source in sources(body)} == {"active"}, question.target
        for question in whole_ranges(orders):
            assert [source["partition"] for source in sources(answered(port, question))] == list(range(PARTITIONS))
    check_what_is_told_and_where(instances)

    away = f"127.0.0.1:{instances.ports['two'][0]}"
    lost = {partition for partition, owner in instances.owners(instances.running[0]).items() if owner == away}
    instances.kill("two")

    asked = [question for key in KEYS if orders.partition(key) in lost for question in questions(orders, key)]
    for port in instances.running:
        status, body = get(port, asked[0].target)
        assert (status, body["type"]) == (503, "urn:pykstreams:problem:unavailable")
        for question in asked + whole_ranges(orders):
            for source in sources(answered(port, question, "stale=allow")):
                if source["partition"] in lost:
                    assert (source["role"], source["offset_lag"]) == ("standby", 0)
                    assert isinstance(source["stale_ms"], int)
                    assert source["host"] != away
                else:
                    assert source["role"] == "active"


def check_what_is_told_and_where(instances: Instances) -> None:
    """Each process listens at its port of the loopback interface only, and has its metrics there."""
    for name, process in instances.processes.items():
        assert listening(process.pid) == {f"127.0.0.1:{port}" for port in instances.ports[name]}
    told = [scraped(port) for port in instances.running]
    assert [found["kafka_streams_alive_stream_threads"] for found in told] == [1] * len(told)
    assert sum(found["kafka_streams_thread_process_total"] for found in told) >= RECORDS * len(KEYS)


def scraped(port: int) -> dict[str, float]:
    """The sums of all samples of a name, as the client of Prometheus reads them."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/plain")
        text = answer.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def answered(port: int, question: Question, more: str = "") -> Any:
    """The answer to a question when all records have been processed."""
    target = with_query(question.target, more) if more else question.target
    status, body = get(port, target)
    assert status == 200, (target, status, body)
    assert question.told(body) == question.expected(RECORDS), target
    return body


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_no_answer_is_wrong_while_owners_are_killed_one_after_the_other(make: Make) -> None:
    """Records go on to come; an answer has all up to the position that it tells, and nothing that was not written."""
    instances, orders = make(**{"consumer.session.timeout.ms": 6_000, "consumer.heartbeat.interval.ms": 1_000})
    chance, statuses, roles = random.Random(16), Counter[int](), Counter[str]()

    def ask(ports: list[int]) -> None:
        key = chance.choice(KEYS)
        question = chance.choice(questions(orders, key))
        status, body = get(chance.choice(ports), with_query(question.target, "stale=allow"))
        statuses[status] += 1
        if status == 503:
            assert body["type"] == "urn:pykstreams:problem:unavailable", body
            return
        (source,) = sources(body)
        roles[source["role"]] += 1
        if status == 404 or body.get("rows") == []:  # a copy that has only begun says how far it is behind
            assert source["role"] != "active" and source["offset_lag"] != 0, body
            return
        position = source["position"].get(orders.topic, {})  # a record may come in between it and the rows
        least = orders.up_to(key, position.get(str(source["partition"]), -1))
        possible = [question.expected(count) for count in range(max(least, 1), len(orders.places[key]) + 1)]
        assert status == 200 and question.told(body) in possible, body

    for instance in ("two", "three", "one"):
        port, before = instances.ports[instance][-1], statuses.copy()
        others = [one for one in instances.running if one != port]
        if instance == "one":
            instances.kill_worker(port)  # one of two processes
        else:
            instances.kill(instance)

        def all_are_active(ports: list[int] = others) -> bool:
            orders.write([chance.choice(KEYS)])
            for _ in range(20):
                ask(ports)
            return instances.all_are_active(orders, ports)

        wait_until(all_are_active, "the tasks of the killed process came nowhere")
        during = statuses - before
        assert during[200] > 0.9 * during.total(), (instance, during)
        if instance not in instances.processes:
            instances.start(instance, port)
        instances.wait_until_settled(orders)  # so that nothing moves when the next one is killed
        instances.wait_until_current(orders)

    assert roles["standby"] > 0
