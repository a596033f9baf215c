"""A group whose leader shares out tasks by an assignor of the user (``task.assignor.class``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykstreams.assignment import (
    ApplicationState,
    AssignedTask,
    KafkaStreamsAssignment,
    TaskAssignment,
    TaskAssignor,
    TaskType,
)
from tests.brokers.brokers import create_topic
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PARTITIONS = 3

SCRIPT = '''
    """Counts words, whose lines are read by another sub-topology."""

    from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder

    text = Serdes.string()

    def build(config):
        builder = StreamsBuilder()
        lines = builder.stream(config["app.prefix"] + "-lines", Consumed(key_serde=text, value_serde=text))
        words = lines.flat_map_values(str.split)
        grouped = Grouped(name="words", key_serde=text, value_serde=text)
        words.group_by(lambda _, word: word, grouped).count(materialized=Materialized("words"))
        return builder.build()
'''


class StateOnLarge(TaskAssignor):
    """Tasks with state go to an instance with the tag, if there is one, and all others to one without."""

    def assign(self, application_state: ApplicationState) -> TaskAssignment:
        states = application_state.kafka_streams_states(compute_task_lags=True)
        by_size = sorted(states, key=lambda process: states[process].client_tags.get("size") == "large")
        assignments = {process: KafkaStreamsAssignment(process) for process in states}
        for task in application_state.all_tasks.values():
            place = by_size[-1] if task.is_stateful else by_size[0]
            assignments[place].assign_task(AssignedTask(task.id, TaskType.ACTIVE))
        return TaskAssignment(list(assignments.values()))


class Mistaken(TaskAssignor):
    """Forgets all instances."""

    def assign(self, application_state: ApplicationState) -> TaskAssignment:
        return TaskAssignment([])


@pytest.fixture
def app(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Workers]:
    made = Workers(bootstrap_servers, make_name("own-assignor"), tmp_path, SCRIPT, PARTITIONS)
    create_topic(bootstrap_servers, made.topic("lines"), partitions=PARTITIONS)
    yield made
    made.end()


def test_tasks_move_to_where_the_assignor_wants_them(app: Workers) -> None:
    named = f"task.assignor.class={__name__}:{StateOnLarge.__name__}"
    app.start("small", named, "client.tag.size=small")
    app.wait("one worker runs all tasks", lambda: app.running_tasks() == 2 * PARTITIONS)

    app.start("big", named, "client.tag.size=large")
    wanted = {"small": {f"0_{n}" for n in range(PARTITIONS)}, "big": {f"1_{n}" for n in range(PARTITIONS)}}
    app.wait("the tasks with state are on the big instance", lambda: app.running() == wanted)


def test_a_mistake_of_the_assignor_ends_the_worker_that_leads(app: Workers) -> None:
    app.start("one", f"task.assignor.class={__name__}:{Mistaken.__name__}")

    assert app.processes["one"].wait(app.patience_s) != 0
    assert f"the task assignor {__name__}.Mistaken made a mistake, MISSING_PROCESS_ID" in app.log("one")
