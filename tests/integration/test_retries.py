"""Records that wait to be tried again, on a real broker: a worker dies while they wait, and another takes them over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import create_topic
from tests.brokers.records import key_of, records_of
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PARTITIONS = 2
KEYS = [f"key{number}" for number in range(20)]
WAITING = KEYS[:6]
"""The keys whose records the service refuses while it is down."""

SCRIPT = '''
    """Asks a service that is down while there is a file of that name."""

    from datetime import timedelta
    from pathlib import Path

    from pykstreams import Consumed, LogAndContinueProcessingExceptionHandler, Produced, Retry, Serdes, StreamsBuilder
    from tests.integration.crashes import crash_once

    text = Serdes.string()
    config = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}

    def build(config):
        prefix, folder = config["app.prefix"], Path(config["app.folder"])
        builder = StreamsBuilder()

        def ask(value):
            if value.startswith("crash"):
                crash_once(folder / value)
            if value == "never" or (value.startswith("asks") and (folder / "down").exists()):
                raise ConnectionError(value)
            return value

        retry = Retry(max_attempts=3, backoff=200, max_backoff=200, retry_on=ConnectionError)
        stream = builder.stream(f"{prefix}-in", Consumed(key_serde=text, value_serde=text))
        patient = retry.replace(max_attempts=None)
        (
            stream.map_values(ask, retry=patient if config["app.patient"] == "yes" else retry)
            .to(f"{prefix}-out", Produced(key_serde=text, value_serde=text))
        )
        return builder.build()
'''


@pytest.fixture
def make_asking(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Workers]]:
    made: list[Workers] = []

    def make(*settings: str) -> Workers:
        name = make_name("retries")
        for suffix in ("in", "out", "dead"):
            create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
        all_settings = (f"app.folder={tmp_path}", f"errors.dead.letter.queue.topic.name={name}-dead", *settings)
        made.append(Workers(bootstrap_servers, name, tmp_path, SCRIPT, PARTITIONS, all_settings))
        return made[-1]

    yield make
    for app in made:
        app.end()


def values_by_key(app: Workers, topic: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in records_of(app.brokers, [app.topic(topic)]):
        found.setdefault(key_of(record).decode(), []).append((record.value() or b"").decode())
    return found


def test_waiting_records_leave_once_and_in_order_after_a_crash_under_exactly_once(
    make_asking: Callable[..., Workers], tmp_path: Path
) -> None:
    app = make_asking("processing.guarantee=exactly_once_v2", "app.patient=yes", "num.standby.replicas=0")
    sent = {key: [f"{'asks' if key in WAITING else 'has'} {number}" for number in range(30)] for key in KEYS}
    passing = {key: values for key, values in sent.items() if key not in WAITING}
    (tmp_path / "down").touch()
    app.start_all(["one", "two"], PARTITIONS)
    app.send(("in", key, sent[key][number]) for number in range(15) for key in KEYS)
    app.wait(
        "records of other keys pass", lambda: values_by_key(app, "out") == {key: v[:15] for key, v in passing.items()}
    )

    app.send([("in", "key19", "crash")])
    dead = app.wait_for_crash()
    app.delete_state(dead)
    app.start(dead)
    app.send(("in", key, sent[key][number]) for number in range(15, 30) for key in KEYS)
    app.wait("the other half has been read", lambda: app.unread(["in"])["in"] == 0)
    assert not set(values_by_key(app, "out")) & set(WAITING)

    (tmp_path / "down").unlink()
    sent["key19"].insert(15, "crash")
    app.wait("all have left", lambda: sum(map(len, values_by_key(app, "out").values())) >= 601)
    app.stop("one")
    app.stop("two")
    assert values_by_key(app, "out") == sent


def test_a_record_whose_attempts_are_used_up_is_a_dead_letter_on_a_broker(make_asking: Callable[..., Workers]) -> None:
    app = make_asking("app.patient=no")
    app.start_all(["one"], PARTITIONS)
    app.send([("in", "a", "first"), ("in", "a", "never"), ("in", "a", "last")])
    app.wait("the last record is through", lambda: values_by_key(app, "out") == {"a": ["first", "last"]})

    (letter,) = records_of(app.brokers, [app.topic("dead")])
    headers = dict(letter.headers() or ())
    assert (letter.key(), letter.value(), headers["__streams.errors.attempts"]) == (b"a", b"never", b"3")
    assert headers["__streams.errors.offset"] == b"1"
    app.stop("one")
