"""State that cannot be kept or read: nothing is lost in silence, and what is damaged costs no more than it must."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.brokers.brokers import create_topic, wait_until_gone
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

BOTH_BY_NIGHT = pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.nightly), "exactly_once_v2"]
)
PARTITIONS = 2
KEYS = 4_000
LARGE = 1_500_000
"""More than clients and brokers take by default."""

SCRIPT = '''
    """Counts records by key, and keeps the last value of each; "large" makes a value that is too large to send."""

    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder
    from pykstreams.errors import (
        ErrorHandlerResponse, LogAndContinueProcessingExceptionHandler, ProductionExceptionHandler
    )

    text, number = Serdes.string(), Serdes.long()

    class GoOn(ProductionExceptionHandler):
        def handle_error(self, context, record, exception):
            return ErrorHandlerResponse.resume()

    config = {
        "production.exception.handler": GoOn(),
        "processing.exception.handler": LogAndContinueProcessingExceptionHandler(),
        "statestore.cache.max.bytes": 0,
    }

    def build(config):
        prefix = config["app.prefix"]
        by_key = StreamsBuilder()
        grouped = by_key.stream(f"{prefix}-in", Consumed(key_serde=text, value_serde=text)).group_by_key(
            Grouped(key_serde=text, value_serde=text)
        )
        counts = grouped.count(materialized=Materialized("counts", key_serde=text, value_serde=number))
        counts.to_stream().to(f"{prefix}-counts", Produced(key_serde=text, value_serde=number))
        grouped.reduce(
            lambda old, new: "x" * LARGE if new == "large" else new,
            materialized=Materialized("last", key_serde=text, value_serde=text),
        )
        return by_key.build(config)
'''.replace("LARGE", str(LARGE))


class Application(Workers):
    """One worker, and what it has counted."""

    def send_each(self, value: str = "v") -> None:
        self.send(("in", f"k{number}", value) for number in range(KEYS))

    def counts(self) -> dict[str, int]:
        found = self.last_values(["counts"])["counts"]
        return {key: int.from_bytes(count or b"", "big") for key, count in found.items()}

    def wait_for_counts(self, count: int) -> None:
        self.wait(f"every count is {count}", lambda: list(self.counts().values()) == [count] * KEYS)

    def ended(self, seconds: float = 60) -> tuple[int, str]:
        """Waits until the worker ends by itself; gives its exit code, and what it has said."""
        code = self.processes.pop("one").wait(seconds)
        return code, self.log("one")

    def folders(self, store: str) -> list[Path]:
        return sorted(self.folder.rglob(f"rocksdb/{store}"))


@pytest.fixture
def make_application(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Application]]:
    made: list[Application] = []

    def make(*settings: str) -> Application:
        name = make_name("lost")
        for suffix in ("in", "counts"):
            create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
        made.append(Application(bootstrap_servers, name, tmp_path, SCRIPT, PARTITIONS, settings))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.nightly), "exactly_once_v2"])
def test_value_that_is_too_large_for_its_changelog_is_in_neither_until_it_can_be_sent(
    make_application: Callable[..., Application], bootstrap_servers: str, guarantee: str
) -> None:
    """Both handlers would go on: then the store would have the value, and lose it with its directory."""
    app = make_application(f"processing.guarantee={guarantee}")
    app.start("one")
    app.send([("in", "key", "small"), ("in", "key", "large")])

    code, said = app.ended()

    changelog = f"{app.name}-last-changelog"
    assert code != 0
    assert f"record to {changelog}-" in said
    assert "the changelog of store 'last' of task 0_" in said
    assert f"it has {LARGE + 3} bytes: raise max.message.bytes of the topic and producer.message.max.bytes" in said
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    entry = ConfigEntry("max.message.bytes", str(2 * LARGE), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, changelog, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    app.settings += (f"producer.message.max.bytes={2 * LARGE}",)
    app.start("one")
    app.wait(
        "the large value is logged",
        lambda: app.last_values(["last-changelog"])["last-changelog"] == {"key": b"x" * LARGE},
    )
    app.stop("one")


@BOTH_BY_NIGHT
def test_damaged_store_is_set_aside_and_restored_while_its_worker_runs(
    make_application: Callable[..., Application], guarantee: str
) -> None:
    app = make_application(f"processing.guarantee={guarantee}")
    app.start("one")
    app.send_each()
    app.wait_for_counts(1)
    app.stop("one")
    damaged, _ = app.folders("counts")
    task_dir = damaged.parents[1]
    alter(damaged)
    app.start("one")
    app.send_each()

    if guarantee == "exactly_once_v2":
        app.wait_for_counts(2)
    else:  # what was counted since the last commit is in the changelog, and is processed again
        app.wait("every record is counted", lambda: {2} <= {*app.counts().values()} <= {2, 3})

    said = f"task {task_dir.name}: store 'counts' is damaged; it was set aside in '{task_dir}/counts.damaged-"
    assert app.log("one").count(said) == 1
    assert len([*task_dir.glob("counts.damaged-*")]) == 1
    app.stop("one")


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("*.sst", marks=pytest.mark.nightly),
        "MANIFEST-*",
        pytest.param("CURRENT", marks=pytest.mark.nightly),
    ],
)
def test_half_deleted_store_is_set_aside_and_restored_at_the_start(
    make_application: Callable[..., Application], pattern: str
) -> None:
    app = make_application("processing.guarantee=exactly_once_v2")
    app.start("one")
    app.send_each()
    app.wait_for_counts(1)
    app.stop("one")
    damaged, _ = app.folders("counts")
    next(damaged.glob(pattern)).unlink()
    app.start("one")
    app.send_each()

    app.wait_for_counts(2)

    assert len([*damaged.parents[1].glob("counts.damaged-*")]) == 1
    app.stop("one")


def alter(store: Path) -> None:
    """Alters bytes in the middle of the largest file of a store."""
    file = max(store.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20] = bytes(byte ^ 0x5A for byte in content[middle : middle + 20])
    file.write_bytes(content)


@BOTH_BY_NIGHT
def test_state_whose_changelog_was_deleted_is_refused_and_both_ways_out_are_told(
    make_application: Callable[..., Application], bootstrap_servers: str, guarantee: str
) -> None:
    app = make_application(f"processing.guarantee={guarantee}")
    app.start("one")
    app.send_each()
    app.wait_for_counts(1)
    app.stop("one")
    delete(bootstrap_servers, f"{app.name}-counts-changelog")
    app.start("one")

    code, said = app.ended()

    assert code == 2, said
    assert f"{app.name}-counts-changelog" in said
    assert "Otherwise bring back topic" in said
    assert "or delete the folder" in said
    assert len(app.folders("counts")) == PARTITIONS
    assert list(app.counts().values()) == [1] * KEYS


@pytest.mark.nightly
def test_source_topic_that_is_deleted_is_noticed_within_a_minute(
    make_application: Callable[..., Application], bootstrap_servers: str
) -> None:
    app = make_application()
    app.start("one")
    app.send_each()
    app.wait_for_counts(1)
    delete(bootstrap_servers, f"{app.name}-in")

    code, said = app.ended()

    assert code == 2, said
    assert f"{app.name}-in" in said


def delete(brokers: str, topic: str) -> None:
    """Deletes a topic, and waits until no broker knows it."""
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_topics([topic]).values():
        future.result()
    wait_until_gone(brokers, topic)
