"""Who reads at the worker's end of the socket: the worker while it processes records, and the event loop otherwise."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from pykstreams.http import HttpOptions, app
from pykstreams.http.asked_keys import AskedKey
from pykstreams.http.exchange import HttpAnswer, HttpRequest
from pykstreams.http.process.channel import Channel
from pykstreams.http.process.messages import LOG, Messages, answers_of, frame, lookups_frame, requests_frame
from tests.unit.http.served_application import Streams
from tests.unit.http.test_store_routes import spread, table
from tests.unit.runtime.queries.queried import Application

ASKED = lookups_frame({"prices": [(7, AskedKey("prices", "tea"))]})


class Loop(asyncio.SelectorEventLoop):
    """An event loop that is run turn by turn, and whose clock stands still."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def turn(self) -> None:
        """Does what is due, and waits for nothing."""
        self.call_soon(self.stop)
        self.run_forever()


class Process:
    """The server's process, at the other end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self._messages = Messages()

    def sends(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(frames))

    def answered(self) -> dict[int, HttpAnswer]:
        """What has come, by the number of the request."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return {}
        return {number: answer for message in self._messages.of(data) for number, answer in answers_of(message)}


class Bench:
    """A channel, its event loop, a worker between two batches, and the server's process."""

    def __init__(self, application: Application) -> None:
        self.loop = Loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.process = Process(theirs)
        self.channel = Channel(app(Streams(application), options=HttpOptions()).answers, self.loop, ours)
        self.worker = application.queries.between

    def end(self) -> None:
        self.channel.close()
        self.process.socket.close()
        self.loop.turn()
        self.loop.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    application = Application(table(), tmp_path).start()
    spread(application, ["tea"], 1)
    made = Bench(application)
    yield made
    made.end()
    application.close()


def value_of(answer: HttpAnswer) -> object:
    return orjson.loads(answer.body)["value"]


def test_a_worker_between_two_batches_answers_with_no_turn_of_another_thread(bench: Bench) -> None:
    bench.process.sends(ASKED)

    bench.worker.look()

    assert value_of(bench.process.answered()[7]) == "v-tea"


def test_questions_to_a_worker_that_processes_nothing_are_answered_at_once(bench: Bench) -> None:
    bench.process.sends(ASKED)

    bench.loop.turn()

    assert value_of(bench.process.answered()[7]) == "v-tea"


def test_the_event_loop_leaves_the_socket_to_a_worker_that_looks_often(bench: Bench) -> None:
    answered = set[int]()
    bench.worker.look()
    for number in range(1, 100):
        bench.loop.now = number / 100
        bench.worker.look()
        answered |= bench.process.answered().keys()
        bench.process.sends(lookups_frame({"prices": [(number, AskedKey("prices", "tea"))]}))
        bench.loop.turn()
        bench.loop.turn()
        assert bench.process.answered() == {}

    assert answered >= set(range(1, 97))  # the last ones wait for the next look


def test_keys_that_come_within_a_fiftieth_of_a_second_are_looked_up_together(bench: Bench) -> None:
    bench.worker.look()
    bench.process.sends(ASKED, lookups_frame({"prices": [(8, AskedKey("prices", "milk"))]}))
    bench.loop.now = 0.01
    bench.worker.look()
    assert bench.process.answered() == {}

    bench.loop.now = 0.02
    bench.worker.look()

    assert bench.process.answered().keys() == {7, 8}


def test_the_event_loop_reads_when_a_quick_worker_has_not_looked_for_a_quarter_of_a_second(bench: Bench) -> None:
    bench.worker.look()
    bench.worker.look()
    bench.process.sends(ASKED)
    for now in (0.0, 0.24):
        bench.loop.now = now
        bench.loop.turn()
        bench.loop.turn()
        assert bench.process.answered() == {}

    bench.loop.now = 0.25
    bench.loop.turn()
    bench.loop.turn()

    assert value_of(bench.process.answered()[7]) == "v-tea"


def test_questions_to_a_worker_whose_batches_take_long_are_read_by_the_event_loop(bench: Bench) -> None:
    bench.worker.look()
    bench.loop.now = 0.5
    bench.worker.look()
    bench.process.sends(ASKED)

    bench.loop.turn()

    assert value_of(bench.process.answered()[7]) == "v-tea"


def test_the_event_loop_reads_again_as_soon_as_a_worker_has_nothing_to_process(bench: Bench) -> None:
    bench.worker.look()
    bench.worker.look()
    bench.process.sends(ASKED)
    bench.loop.turn()
    assert bench.process.answered() == {}

    bench.worker.rest()
    bench.loop.turn()
    bench.loop.turn()

    assert value_of(bench.process.answered()[7]) == "v-tea"


def test_what_a_worker_reads_and_cannot_look_up_the_event_loop_answers(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    request = HttpRequest("/stores/prices", "/stores/prices", "", "")
    bench.process.sends(requests_frame([(8, request)]), frame(LOG, [30, "pykstreams.http", "slow client"]), ASKED)

    bench.worker.look()
    assert [*bench.process.answered()] == [7]
    assert "slow client" in caplog.text

    while not (answered := bench.process.answered()):
        bench.loop.turn()
    assert answered[8].status == 200


def test_the_end_of_the_process_is_noticed_whoever_reads_it(bench: Bench) -> None:
    bench.process.socket.close()

    bench.worker.look()
    assert not bench.channel.ended.done()
    bench.loop.turn()

    assert bench.channel.ended.done()


def test_a_worker_looks_no_more_when_the_channel_is_closed(bench: Bench) -> None:
    bench.channel.close()

    bench.worker.look()
    bench.channel.look()  # by a worker that was about to
    bench.channel.rest()

    assert bench.process.socket.recv(1 << 16) == b""
    with pytest.raises(BrokenPipeError):
        bench.process.sends(ASKED)
