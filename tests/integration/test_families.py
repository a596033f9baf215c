"""Each family of the DSL on a real broker, with a restart in the middle: results must be exactly those without one.

One worker runs all of ``families.py``. Records are sent in steps; a step is sent when everything before it has been
processed and committed, so that the order of records of different topics is certain. Between steps 2 and 3 the worker
is stopped and started again: with its state, without it, or, under exactly-once, with state that another worker has
outrun, or killed while it processes step 2.

Times are told from the full hour on: brokers delete what is older than the retention of a topic, so it cannot be 1970.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.integration.families import HOUR_MS
from tests.integration.family_app import REPARTITION_TOPICS, App, Results, Steps

pytestmark = pytest.mark.slow

# --- what is sent ---

WORDS: Steps = {
    1: [("0", "a", 10), ("0", "b", 20), ("0", "a", 30), ("0", "a", 160), ("0", "b", 160), ("0", "a", 60)],
    2: [("1", "c", 140), ("1", "c", 150), ("0", "b", 165)],
    3: [("0", "a", 170), ("0", "a", 70), ("0", "b", 170), ("1", "c", 155)],
    4: [("0", "b", 199), ("1", "c", 199)],
}
"""The key is the partition. A window takes records until 50 ms after its end: ``a`` at 60 and 70 is late."""

VISITS: Steps = {
    1: [("a", "", 10), ("a", "", 40), ("b", "", 30)],
    2: [("b", "", 60)],
    3: [("a", "", 80)],
    4: [("a", "", 300), ("b", "", 100)],
}
AMOUNTS: Steps = {
    1: [("a", "", 10), ("b", "", 20), ("a", "", 110)],
    2: [("a", "", 120), ("b", "", 130)],
    3: [("a", "", 140)],
    4: [("c", "", 210)],
}
LEFT: Steps = {
    1: [("a", "l1", 10), ("e", "l2", 15), ("e", "l3", 15)],
    2: [("b", "l4", 30), ("c", "l5", 40)],
    3: [("e", "l6", 15)],
    5: [("t", "l7", 300), ("t", "l8", 310)],
}
RIGHT: Steps = {
    1: [("b", "r1", 20)],
    3: [("c", "r2", 50), ("d", "r3", 60)],
    4: [("e", "r4", 65)],
}
NAMES: Steps = {
    1: [("a", "Ann", 10), ("b", "Bob", 11)],
    4: [("a", None, 40), ("c", "Cid", 41)],
}
CITIES: Steps = {
    2: [("a", "Oslo", 20)],
    3: [("b", "Bonn", 32)],
    5: [("a", None, 52)],
}
ORDERS: Steps = {
    2: [("b", "tea", 25)],
    3: [("a", "milk", 30), ("c", "rum", 31)],
    5: [("a", "gin", 50), ("c", "ale", 51)],
}
SECONDS: Steps = {
    1: [("a", "1", 10)],
    3: [("a", "2", 30)],
    5: [("b", "3", 50)],
}
PAGES: Steps = {
    2: [("site", "a:x", 20), ("site", "b:y", 21)],
    4: [("site", "a:z", 110)],
}
PRICES: Steps = {
    1: [("a", "p10", 10), ("a", "p100", 100)],
    2: [("a", "p50", 50), ("b", "q350", 350)],
    4: [("a", "p40", 40), ("a", "p70", 70)],
}
"""The history goes back 300 ms: ``p50`` is late and put, ``p40`` is too late, since ``b`` has come to 350."""

SALES: Steps = {
    2: [("c", "r90", 90)],
    3: [("a", "s60", 60), ("a", "s49", 49), ("a", "s120", 120)],
    5: [("a", "t55", 55), ("a", "t75", 75), ("a", "t45", 45), ("a", "t300", 300)],
}
INPUTS = {
    "words": WORDS,
    "visits": VISITS,
    "amounts": AMOUNTS,
    "left": LEFT,
    "right": RIGHT,
    "names": NAMES,
    "cities": CITIES,
    "orders": ORDERS,
    "seconds": SECONDS,
    "pages": PAGES,
    "prices": PRICES,
    "sales": SALES,
    "crash": {},
}

# --- running it ---


@dataclass(frozen=True)
class Run:
    """What is left when the application has stopped."""

    app: App
    way: Callable[[App], None]
    """How it was restarted."""
    results: dict[str, Results]
    restored: set[str]


EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}


def restart_with_state(app: App) -> None:
    app.start()
    app.first_steps()
    app.stop()
    app.start()


def restart_without_state(app: App) -> None:
    app.start()
    app.first_steps()
    app.stop()
    app.delete_state()
    app.start()


def restart_with_old_state(app: App) -> None:
    """A worker on another machine has done step 2; what that changed is read into state that stands at step 1."""
    app.start(EXACTLY_ONCE)
    app.send_step(1)
    app.wait_until_read()
    app.stop()
    app.start(EXACTLY_ONCE, state="elsewhere")
    app.send_step(2)
    app.wait_until_read()
    app.stop()
    app.start(EXACTLY_ONCE)


def crash_under_exactly_once(app: App) -> None:
    app.start({**EXACTLY_ONCE, "commit.interval.ms": "1000"})
    app.send_step(1)
    app.wait_until_read()
    app.send_step(2)
    app.kill()
    app.start(EXACTLY_ONCE)
    app.wait_until_read()


WAYS = [
    restart_with_state,
    pytest.param(restart_without_state, marks=pytest.mark.nightly),
    pytest.param(restart_with_old_state, marks=pytest.mark.nightly),
    crash_under_exactly_once,
]


@pytest.fixture(scope="module", params=WAYS)
def run(
    request: pytest.FixtureRequest,
    bootstrap_servers: str,
    make_name: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Run]:
    """The application after all steps, once for each way to restart it."""
    hour = int(time.time()) // 3600 * HOUR_MS
    app = App(bootstrap_servers, make_name("families"), tmp_path_factory.mktemp("families"), INPUTS, hour)
    try:
        app.create_topics()
        request.param(app)
        for step in (3, 4, 5):
            app.send_step(step)
            app.wait_until_read()
        restored = app.restored()
        app.stop()
        yield Run(app, request.param, app.results(), restored)
    finally:
        app.stop_all()


# --- what must come out ---


def test_windowed_counts_behind_a_repartition_topic_are_exact(run: Run) -> None:
    assert run.results["counts"] == {
        "a@0": [("1", 10), ("2", 30)],
        "a@100": [("1", 160), ("2", 170)],
        "b@0": [("1", 20)],
        "b@100": [("1", 160), ("2", 165), ("3", 170), ("4", 199)],
        "c@100": [("1", 140), ("2", 150), ("3", 155), ("4", 199)],
    }


def test_records_behind_a_closed_window_are_late_before_and_after_the_restart(run: Run) -> None:
    """After it once the operator has seen the time again: as in Kafka Streams it does not keep what it observed."""
    assert run.results["late-words"] == {"a": [("a", 60), ("a", 70)]}


def test_session_goes_on_after_the_restart_and_late_records_stay_out(run: Run) -> None:
    assert run.results["sessions"] == {
        "a@10-10": [("1", 10), ("None", 10)],
        "a@10-40": [("2", 40), ("None", 40)],
        "a@10-80": [("3", 80)],
        "a@300-300": [("1", 300)],
        "b@30-30": [("1", 30), ("None", 30)],
        "b@30-60": [("2", 60)],
    }


def test_windows_emitted_on_close_before_the_restart_are_not_emitted_after_it(run: Run) -> None:
    assert run.results["closed"] == {
        "a@0": [("1", 10)],
        "b@0": [("1", 20)],
        "a@100": [("3", 140)],
        "b@100": [("1", 130)],
    }


def test_sessions_emitted_on_close_before_the_restart_are_not_emitted_after_it(run: Run) -> None:
    assert run.results["ended"] == {
        "a@10-10": [("1", 10)],
        "b@20-20": [("1", 20)],
        "a@110-140": [("3", 140)],
        "b@130-130": [("1", 130)],
    }


def test_suppressed_windows_leave_the_buffer_once(run: Run) -> None:
    assert run.results["finals"] == {
        "a@0": [("1", 10)],
        "b@0": [("1", 20)],
        "a@100": [("3", 140)],
        "b@100": [("1", 130)],
    }


def test_left_join_pairs_across_the_restart_and_pads_each_unmatched_record_once(run: Run) -> None:
    assert run.results["left-joined"] == {
        "a": [("l1+None", 10)],
        "b": [("l4+r1", 30)],
        "c": [("l5+r2", 50)],
        "e": [("l2+r4", 65), ("l3+r4", 65), ("l6+r4", 65)],
    }


def test_outer_join_in_memory_pairs_across_the_restart_and_pads_each_unmatched_record_once(run: Run) -> None:
    assert run.results["outer-joined"] == {
        "a": [("l1+None", 10)],
        "b": [("l4+r1", 30)],
        "c": [("l5+r2", 50)],
        "d": [("None+r3", 60)],
        "e": [("l2+r4", 65), ("l3+r4", 65), ("l6+r4", 65)],
    }


def test_stream_is_joined_with_the_rows_that_its_table_had_before_the_restart(run: Run) -> None:
    assert run.results["named"] == {
        "a": [("milk+Ann", 30), ("gin+None", 50)],
        "b": [("tea+Bob", 25)],
        "c": [("rum+None", 31), ("ale+Cid", 51)],
    }


def test_table_is_joined_with_the_rows_that_the_other_had_before_the_restart(run: Run) -> None:
    assert run.results["profiles"] == {
        "a": [("Ann+None", 10), ("Ann+Oslo", 20), ("None+Oslo", 40), (None, 52)],
        "b": [("Bob+None", 11), ("Bob+Bonn", 32)],
        "c": [("Cid+None", 41)],
    }


def test_cogrouped_streams_go_on_with_one_aggregate(run: Run) -> None:
    assert run.results["customers"] == {
        "a": [("s1", 10), ("s1 px", 20), ("s1 px s2", 30), ("s1 px s2 pz", 110)],
        "b": [("py", 21), ("py s3", 50)],
    }


def test_cogrouped_streams_go_on_with_one_aggregate_a_window(run: Run) -> None:
    assert run.results["customers-by-window"] == {
        "a@0": [("s1", 10), ("s1 px", 20), ("s1 px s2", 30)],
        "a@100": [("pz", 110)],
        "b@0": [("py", 21), ("py s3", 50)],
    }


def test_stream_is_joined_with_the_row_of_its_time_and_late_rows_stay_out_after_the_restart_too(run: Run) -> None:
    """Kafka Streams forgets the stream time of a store that is not restored, and would take ``p40``."""
    assert run.results["priced"] == {
        "a": [
            ("s60+p50", 60),
            ("s49+None", 49),
            ("s120+p100", 120),
            ("t55+p50", 55),
            ("t75+p70", 75),
            ("t45+None", 45),
            ("t300+p100", 300),
        ],
        "c": [("r90+None", 90)],
    }


def test_records_that_waited_for_a_table_before_the_restart_are_joined_after_it(run: Run) -> None:
    assert run.results["priced-later"] == {
        "a": [
            ("s49+None", 49),
            ("s60+p50", 60),
            ("t55+p50", 55),
            ("t45+None", 45),
            ("t75+p70", 75),
            ("s120+p100", 120),
        ],
        "c": [("r90+None", 90)],
    }


def test_changelogs_are_read_only_where_state_is_not_on_disk_or_too_old(run: Run) -> None:
    in_memory = {"finals-store"} | {f"outer-join-outer-{name}-join-store" for name in ("this", "other", "shared")}
    if run.way is restart_with_state:
        assert run.restored == in_memory
    if run.way is restart_without_state:
        assert run.restored == {name.removesuffix("-changelog") for name in CHANGELOGS}
    if run.way is restart_with_old_state:
        unchanged = {"left-join-outer-other-join-store", "names"}
        assert run.restored == {name.removesuffix("-changelog") for name in CHANGELOGS} - unchanged


# --- what stands on the broker ---

DAY_MS = 86_400_000
COMPACTED = {"cleanup.policy": "compact"}


def windowed(retention_ms: int, policy: str = "compact,delete") -> dict[str, str]:
    """A changelog is kept a day longer than its store (``windowstore.changelog.additional.retention.ms``)."""
    return {"cleanup.policy": policy, "retention.ms": str(DAY_MS + retention_ms)}


CHANGELOGS = {
    "counts-changelog": windowed(100 + 50),
    "sessions-changelog": windowed(50 + 20),
    "closed-changelog": windowed(100),
    "ended-changelog": windowed(50),
    "amounts-changelog": windowed(100),
    "finals-store-changelog": COMPACTED,
    "left-join-this-join-store-changelog": windowed(200, "delete"),
    "left-join-outer-other-join-store-changelog": windowed(200, "delete"),
    "left-join-left-shared-join-store-changelog": COMPACTED,
    "outer-join-outer-this-join-store-changelog": windowed(200, "delete"),
    "outer-join-outer-other-join-store-changelog": windowed(200, "delete"),
    "outer-join-outer-shared-join-store-changelog": COMPACTED,
    "names-changelog": COMPACTED,
    "cities-changelog": COMPACTED,
    "profiles-changelog": COMPACTED,
    "customers-changelog": COMPACTED,
    "customers-by-window-changelog": windowed(100 + 100),
    "prices-changelog": {**COMPACTED, "min.compaction.lag.ms": str(DAY_MS + 300)},
    "priced-later-Buffer-changelog": COMPACTED,
}
"""As the conformance cases have recorded them of Kafka Streams, for windows of other lengths."""


def test_changelogs_have_the_settings_of_kafka_streams(run: Run) -> None:
    found = {name: settings for name, settings in run.app.settings().items() if name.endswith("-changelog")}

    assert {name: settings["message.timestamp.type"] for name, settings in found.items()} == dict.fromkeys(
        CHANGELOGS, "CreateTime"
    )
    shown = {name: {key: found[name][key] for key in wanted} for name, wanted in CHANGELOGS.items()}
    assert shown == CHANGELOGS


def test_repartition_topics_have_the_settings_of_kafka_streams_and_the_partitions_of_their_inputs(run: Run) -> None:
    settings, partitions = run.app.settings(), run.app.partitions()
    wanted = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": "52428800",
    }

    found = {name: {key: settings[name][key] for key in wanted} for name in settings if name.endswith("-repartition")}
    assert found == dict.fromkeys(REPARTITION_TOPICS, wanted)
    assert {name: partitions[name] for name in (*REPARTITION_TOPICS, "counts-changelog")} == {
        "by-word-repartition": 2,
        "by-customer-repartition": 1,
        "counts-changelog": 2,
    }
