"""Several instances over HTTP: any of them answers for any key, copies answer when their owner is away."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from pykstreams.core.errors import ClusterError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TopicPartition
from pykstreams.http import Address, HttpOptions, HttpServer, app
from pykstreams.http.access import Access
from pykstreams.http.peers import Peers
from pykstreams.http.server import bound
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.queries.lags import LagInfo
from pykstreams.testing.clock import MockClock
from tests.brokers.secured import Authority
from tests.unit.http.served_application import Client, Streams
from tests.unit.http.test_store_routes import spread, table
from tests.unit.runtime.queries.queried import TOPIC, Application

KEYS = [f"key-{number}" for number in range(20)]
PARTITIONS = 4


class Instance:
    """An instance with some of the tasks, which serves at a port of its own."""

    def __init__(
        self, folder: Path, active: set[int], standby: set[int], tls: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        self.socket = bound(Address("127.0.0.1", 0))
        self.host = HostInfo("127.0.0.1", self.socket.getsockname()[1])
        settings = {"application.server": f"{self.host.host}:{self.host.port}"}
        self.tasks = Application(table(), folder, partitions=PARTITIONS, settings=settings).start()
        spread(self.tasks, KEYS, PARTITIONS)
        self.active, self.standby = active, standby
        self.tasks.commit()
        for number in range(PARTITIONS):
            if number in standby:
                self.tasks.keep_copy(number)
            elif number not in active:
                self.tasks.started.pop(self.tasks.by_partition[number])
        self.streams = Streams(self.tasks)
        self.clock = MockClock(0)
        http = HttpOptions(**options)
        self.app = app(self.streams, options=http, clock=self.clock)
        self.client = Client(self.app)
        self.server = HttpServer(self.app, self.socket, http, **(tls or {}))
        self.server.start()

    def learn(self, instances: list[Instance]) -> None:
        self.tasks.hosts.update(
            {one.host: _places(one.active) for one in instances}, {one.host: _places(one.standby) for one in instances}
        )

    def close(self) -> None:
        self.server.close()
        self.tasks.close()


def _places(numbers: set[int]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(TOPIC, number) for number in numbers)


Make = Callable[..., list[Instance]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Instance] = []

    def build(*shares: tuple[set[int], set[int]], options: Mapping[str, Any] | None = None) -> list[Instance]:
        for active, standby in shares:
            made.append(Instance(tmp_path / str(len(made)), active, standby, **(options or {})))
        for one in made:
            one.learn(made)
        return made

    yield build
    for one in made:
        one.close()


def test_any_instance_answers_for_any_key(make: Make) -> None:
    one, two = make(({0, 1}, set()), ({2, 3}, set()), options={"token": "secret"})

    for client in (one.client, two.client):
        for key in KEYS:
            answer = client.get(f"/stores/prices/keys/{key}", {"authorization": "Bearer secret"}).json
            owner = one if answer["from"]["partition"] in one.active else two
            assert (answer["key"], answer["value"]) == (key, f"v-{key}")
            assert answer["from"]["host"] == f"127.0.0.1:{owner.host.port}"
            assert answer["from"]["role"] == "active"


def test_a_key_that_no_instance_has_is_answered_by_its_owner(make: Make) -> None:
    one, _ = make((set(), set()), ({0, 1, 2, 3}, set()))

    answer = one.client.get("/stores/prices/keys/nothing")
    assert (answer.status, answer.problem) == (404, "no-such-key")
    assert answer.json["from"]["role"] == "active"


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_pages_of_a_range_are_gathered_from_all_instances(make: Make, limit: int) -> None:
    one, two = make(({0, 2}, set()), ({1, 3}, set()))
    pages = []
    for client in (one.client, two.client):
        found, cursor = [], ""
        while True:
            page = client.get(f"/stores/prices/range?limit={limit}{cursor}").json
            assert len(page["rows"]) <= limit
            found += [row["key"] for row in page["rows"]]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        pages.append(found)

    assert pages[0] == pages[1]
    assert sorted(pages[0]) == sorted(KEYS)
    order = [partition_for_key(key.encode(), PARTITIONS) for key in pages[0]]
    assert order == sorted(order)


@pytest.mark.parametrize(("most_bytes", "rows"), [(1, 1), (150, 3), (400, 8)])
def test_an_answer_of_several_instances_has_no_more_bytes_than_one_of_one(
    make: Make, most_bytes: int, rows: int
) -> None:
    one, _ = make(({0, 2}, set()), ({1, 3}, set()), options={"max_answer_bytes": most_bytes})
    found, cursor = [], ""
    while True:
        page = one.client.get(f"/stores/prices/range?limit=100{cursor}").json
        assert len(page["rows"]) <= rows
        found += [row["key"] for row in page["rows"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"

    assert sorted(found) == sorted(KEYS)


def test_local_scope_asks_nobody_else(make: Make) -> None:
    one, _ = make(({0, 1}, set()), ({2, 3}, set()))

    page = one.client.get("/stores/prices/range?scope=local").json
    assert [source["partition"] for source in page["from"]] == [0, 1]
    away = next(key for key in KEYS if partition_for_key(key.encode(), PARTITIONS) == 2)
    assert one.client.get(f"/stores/prices/keys/{away}?scope=local").problem == "unavailable"


def test_a_copy_answers_with_its_staleness_when_the_owner_is_away(make: Make) -> None:
    one, two = make((set(), {0, 1, 2, 3}), ({0, 1, 2, 3}, set()))
    two.server.close()
    one.streams.lags = {"prices": {number: LagInfo(7, 10) for number in range(PARTITIONS)}}

    refused = one.client.get("/stores/prices/keys/key-1")
    assert (refused.status, refused.problem, refused.headers["retry-after"]) == (503, "unavailable", "1")
    assert refused.json["copies"] == [f"127.0.0.1:{one.host.port}"]

    stale = one.client.get("/stores/prices/keys/key-1?stale=allow").json
    assert stale["value"] == "v-key-1"
    assert (stale["from"]["role"], stale["from"]["offset_lag"], stale["from"]["stale_ms"]) == ("standby", 3, None)
    assert one.client.get("/stores/prices/keys/key-1?stale=1000").problem == "unavailable"  # how old is not known


def test_a_copy_is_as_old_as_the_last_end_that_it_has_come_to(make: Make) -> None:
    one, two = make((set(), {0, 1, 2, 3}), ({0, 1, 2, 3}, set()))
    two.server.close()
    one.streams.lags = {"prices": {number: LagInfo(10, 10) for number in range(PARTITIONS)}}
    target = "/stores/prices/keys/key-1?stale=1500"
    assert one.client.get(target).json["from"]["stale_ms"] == 0

    one.streams.lags = {"prices": {number: LagInfo(10, 12) for number in range(PARTITIONS)}}
    one.clock.advance(1400)
    assert one.client.get(target).json["from"]["stale_ms"] == 1400

    one.clock.advance(200)
    assert one.client.get(target).problem == "unavailable"


def test_a_copy_answers_while_the_brokers_are_away(make: Make) -> None:
    one, two = make((set(), {0, 1, 2, 3}), ({0, 1, 2, 3}, set()))
    two.server.close()
    one.streams.brokers_fail = ClusterError("the brokers are away")

    answer = one.client.get("/stores/prices/keys/key-1?stale=allow")
    assert (answer.status, answer.json["value"]) == (200, "v-key-1")
    assert (answer.json["from"]["offset_lag"], answer.json["from"]["stale_ms"]) == (None, None)
    refused = one.client.get("/stores/prices/keys/key-1?stale=5000")
    assert refused.problem == "unavailable"
    assert "it is not known how far behind" in refused.json["detail"]
    rows = one.client.get("/stores/prices/range?stale=allow").json["rows"]
    assert sorted(row["key"] for row in rows) == sorted(KEYS)


def test_a_copy_of_a_third_instance_answers(make: Make) -> None:
    one, two, three = make((set(), set()), ({0, 1, 2, 3}, set()), (set(), {0, 1, 2, 3}))
    two.server.close()
    three.streams.lags = {"prices": {number: LagInfo(10, 10) for number in range(PARTITIONS)}}

    page = one.client.get("/stores/prices/range?stale=allow").json
    assert sorted(row["key"] for row in page["rows"]) == sorted(KEYS)
    assert {(source["role"], source["host"]) for source in page["from"]} == {
        ("standby", f"127.0.0.1:{three.host.port}")
    }
    assert one.client.get("/stores/prices/range").problem == "unavailable"


def test_an_owner_that_does_not_answer_in_time_is_away(make: Make) -> None:
    one, two = make((set(), set()), ({0, 1, 2, 3}, set()), options={"peer_timeout_ms": 100})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        two.host = HostInfo("127.0.0.1", silent.getsockname()[1])
        one.learn([one, two])

        answer = one.client.get("/stores/prices/keys/key-1")
    assert answer.problem == "unavailable"
    assert f"127.0.0.1:{two.host.port}" in answer.json["detail"]


def test_an_instance_with_another_token_is_a_problem_that_says_so(make: Make) -> None:
    one, two = make((set(), set()), ({0, 1, 2, 3}, set()))
    two.app.answers._access = Access("other")

    answer = one.client.get("/stores/prices/keys/key-1")
    assert answer.problem == "unavailable"
    assert "give all instances the same one" in answer.json["detail"]


def test_an_instance_that_is_named_as_owner_and_has_nothing_answers_no_question_of_its_own(make: Make) -> None:
    one, two = make((set(), set()), (set(), set()))
    two.active = {0, 1, 2, 3}
    one.learn([one, two])
    two.learn([one, two])

    assert one.client.get("/stores/prices/keys/key-1").problem == "unavailable"
    assert two.client.get("/stores/prices/keys/key-1").problem == "unavailable"


def test_an_instance_that_has_not_got_its_partition_ready_says_so(make: Make) -> None:
    (one,) = make(({0, 1, 2, 3}, set()))
    task = one.tasks.by_partition[partition_for_key(b"key-1", PARTITIONS)]
    where = f"127.0.0.1:{one.host.port}"

    one.tasks.started[task] = False
    restoring = one.client.get("/stores/prices/keys/key-1").json["detail"]
    allowed = one.client.get("/stores/prices/keys/key-1?stale=allow").json
    one.tasks.started.pop(task)
    not_open = one.client.get("/stores/prices/keys/key-1").json["detail"]

    assert f"is being restored on {where}, and stale answers are refused" in restoring
    assert (allowed["value"], allowed["from"]["role"]) == ("v-key-1", "restoring")
    assert f"is of {where}, which has not opened it yet" in not_open


def test_an_address_that_is_none_is_an_instance_that_is_away(make: Make) -> None:
    one, two = make((set(), {0, 1, 2, 3}), ({0, 1, 2, 3}, set()))
    two.host = HostInfo("shop..3", 8080)
    one.learn([one, two])

    refused = one.client.get("/stores/prices/keys/key-1")
    assert refused.problem == "unavailable"
    assert "the instance at shop..3:8080 was not reached" in refused.json["detail"]
    assert one.client.get("/stores/prices/keys/key-1?stale=allow").json["value"] == "v-key-1"


def test_an_instance_that_answers_other_parts_is_said_to_be_of_another_release(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = make((set(), set()), ({0, 1, 2, 3}, set()))
    source = {"partition": 0, "host": "two", "role": "active", "position": {}}
    part = {"from": source, "rows": [{"key": "key-1"}], "marks": [], "more": False}
    monkeypatch.setattr(Peers, "ask", lambda *_: {"parts": [part]})

    answer = one.client.get("/stores/prices/keys/key-1")
    assert (answer.status, answer.problem) == (502, "bad-peer")
    assert "run the same release on all" in answer.json["detail"]


def test_a_store_that_its_owner_does_not_know_yet_is_away_and_not_unknown(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while instances are replaced by those of another topology, one after the other."""
    one, two = make((set(), set()), ({0, 1, 2, 3}, set()))
    ask = Peers.ask
    monkeypatch.setattr(Peers, "ask", lambda peers, host, target: ask(peers, host, target.replace("prices", "older")))

    answer = one.client.get("/stores/prices/keys/key-1")
    assert (answer.status, answer.problem) == (503, "unavailable")
    assert answer.json["detail"] == (
        f"the instance at 127.0.0.1:{two.host.port} has a topology without this store; ask again when it has been "
        "replaced by one of this topology"
    )


def part_of(partition: int, *keys: str) -> dict[str, Any]:
    """The answer of one partition, as another instance writes it."""
    source = {"partition": partition, "host": "two", "role": "active", "position": {}}
    return {"from": source, "rows": [{"key": key} for key in keys], "marks": [*keys], "more": False}


@pytest.mark.parametrize(
    "parts",
    [[], [part_of(1)], [part_of(3, "key-1")], [part_of(0, "key-1"), part_of(1)]],
    ids=["none", "without-rows", "a-later-one", "one-of-another-instance"],
)
def test_an_instance_that_leaves_out_what_it_was_asked_for_ends_no_range(
    make: Make, monkeypatch: pytest.MonkeyPatch, parts: list[dict[str, Any]]
) -> None:
    """A range without its last rows would be taken for the whole."""
    one, two = make(({0, 2}, set()), ({1, 3}, set()))
    monkeypatch.setattr(Peers, "ask", lambda *_: {"parts": parts})

    answer = one.client.get("/stores/prices/range")
    assert (answer.status, answer.problem) == (502, "bad-peer")
    told = f"the instance at 127.0.0.1:{two.host.port} answered for partitions"
    assert answer.json["detail"].startswith(told)
    assert "run the same release on all" in answer.json["detail"]


def test_a_range_is_a_problem_and_no_end_where_an_instance_of_another_release_does_not_know_the_cursor(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make(({0, 2}, set()), ({1, 3}, set()))
    page = one.client.get("/stores/prices/range?limit=1").json
    ask, other = Peers.ask, base64.urlsafe_b64encode(orjson.dumps({"at": "key-1"})).decode().rstrip("=")
    monkeypatch.setattr(Peers, "ask", lambda peers, host, target: ask(peers, host, target.replace(page["next"], other)))

    answer = one.client.get(f"/stores/prices/range?cursor={page['next']}")
    assert (answer.status, answer.problem) == (400, "bad-request")
    assert answer.json["host"] == f"127.0.0.1:{two.host.port}"
    assert "is no cursor of this release" in answer.json["detail"]
    assert "or begin again without it" in answer.json["detail"]


def identified(folder: Path, believes: str = "tests") -> dict[str, Any]:
    """The options of instances with a certificate of the authority ``tests``, which believe another one, or that."""
    certificate, key = Authority(folder, "tests").certify("shop")
    trusted = folder / "tests.pem" if believes == "tests" else Authority(folder, believes).certificate
    tls = {"certificate": str(certificate), "key": str(key)}
    return {"tls": tls, "peer_tls": True, "peer_ca_file": str(trusted)}


def test_instances_ask_each_other_by_tls(make: Make, tmp_path: Path) -> None:
    one, two = make(({0, 1}, set()), ({2, 3}, set()), options={**identified(tmp_path), "token": "secret"})

    for client in (one.client, two.client):
        answers = [client.get(f"/stores/prices/keys/{key}", {"authorization": "Bearer secret"}) for key in KEYS]

        assert [answer.json["value"] for answer in answers] == [f"v-{key}" for key in KEYS]
        assert {answer.json["from"]["host"] for answer in answers} == {
            f"127.0.0.1:{instance.host.port}" for instance in (one, two)
        }


def test_an_instance_with_a_certificate_of_somebody_else_is_not_believed(make: Make, tmp_path: Path) -> None:
    one, two = make(({0, 1}, set()), ({2, 3}, set()), options=identified(tmp_path, believes="others"))
    key = next(key for key in KEYS if partition_for_key(key.encode(), PARTITIONS) in two.active)

    answer = one.client.get(f"/stores/prices/keys/{key}")

    assert (answer.status, answer.problem) == (502, "bad-peer")
    assert "certificate verify failed" in answer.json["detail"]
    assert "give all instances certificates of an authority that all of them know" in answer.json["detail"]


def test_an_instance_that_speaks_no_tls_is_one_that_is_not_understood(make: Make, tmp_path: Path) -> None:
    one, two = make(({0, 1}, set()), ({2, 3}, set()), options=identified(tmp_path))
    plain = HttpServer(two.app, bound(Address("127.0.0.1", 0)), HttpOptions())
    plain.start()
    two.host = HostInfo("127.0.0.1", plain.port)
    one.learn([one, two])
    key = next(key for key in KEYS if partition_for_key(key.encode(), PARTITIONS) in two.active)

    answer = one.client.get(f"/stores/prices/keys/{key}")
    plain.close()

    assert (answer.status, answer.problem) == (502, "bad-peer")


@pytest.mark.parametrize(
    ("said", "problem"), [(b"SSH-2.0-shop\r\n", "bad-peer"), (b"", "unavailable")], ids=["another-protocol", "nothing"]
)
def test_an_instance_that_answers_no_http_is_told_from_one_that_closes_its_connection(
    make: Make, said: bytes, problem: str
) -> None:
    one, two = make((set(), set()), ({0, 1, 2, 3}, set()))
    with socket.create_server(("127.0.0.1", 0)) as server:
        two.host = HostInfo("127.0.0.1", server.getsockname()[1])
        one.learn([one, two])

        def answer_once() -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.recv(1 << 16)
                accepted.sendall(said)

        answering = threading.Thread(target=answer_once)
        answering.start()
        answer = one.client.get("/stores/prices/keys/key-1")
        answering.join()

    assert answer.problem == problem


def test_a_copy_answers_where_the_certificate_of_the_owner_is_not_believed(make: Make, tmp_path: Path) -> None:
    one, _ = make((set(), {0, 1, 2, 3}), ({0, 1, 2, 3}, set()), options=identified(tmp_path, believes="others"))

    assert one.client.get("/stores/prices/keys/key-1?stale=allow").json["value"] == "v-key-1"
