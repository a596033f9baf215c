"""How the broker's group shares out tasks: each sub-topology is spread over the workers, whoever comes and goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import create_topic
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PARTITIONS = 4
SUBTOPOLOGIES = 3

SCRIPT = '''
    """One sub-topology reads lines, the second counts their words, and the third one the lines by their length."""

    from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder

    text = Serdes.string()

    def build(config):
        builder = StreamsBuilder()
        lines = builder.stream(config["app.prefix"] + "-lines", Consumed(key_serde=text, value_serde=text))
        words = lines.flat_map_values(str.split)
        words.group_by(lambda _, word: word, grouped("words")).count(materialized=Materialized("words"))
        lines.group_by(lambda _, line: str(len(line)), grouped("lengths")).count(materialized=Materialized("lengths"))
        return builder.build()

    def grouped(name):
        return Grouped(name=name, key_serde=text, value_serde=text)
'''


@pytest.fixture
def app(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Workers]:
    made = Workers(bootstrap_servers, make_name("spread"), tmp_path, SCRIPT, PARTITIONS)
    create_topic(bootstrap_servers, made.topic("lines"), partitions=PARTITIONS)
    yield made
    made.end()


def wait_until_shared(app: Workers) -> dict[str, Counter[str]]:
    """Waits until each worker runs its share; gives how many tasks of each sub-topology each of them has."""
    tasks = SUBTOPOLOGIES * PARTITIONS
    share = tasks // len(app.processes)
    names = app.processes.keys()
    app.wait(
        f"{len(names)} workers run all tasks",
        lambda: (
            app.running().keys() == names
            and app.running_tasks() == tasks
            and all(len(own) - share in (0, 1) for own in app.running().values())
        ),
    )
    return {worker: Counter(task.partition("_")[0] for task in own) for worker, own in app.running().items()}


def test_each_subtopology_is_spread_over_workers_that_come_and_go(app: Workers) -> None:
    app.start("one")
    wait_until_shared(app)

    app.start("two")
    assert list(wait_until_shared(app).values()) == [{"0": 2, "1": 2, "2": 2}] * 2

    app.start("three")
    assert {(worker, number) for worker, own in wait_until_shared(app).items() for number in own} == {
        (worker, number) for worker in ("one", "two", "three") for number in "012"
    }

    app.stop("one")
    del app.processes["one"]
    for own in wait_until_shared(app).values():
        assert set(own) == {"0", "1", "2"}
        assert max(own.values()) <= 3
