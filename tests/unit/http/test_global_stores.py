"""Global stores over HTTP while the thread that feeds them hangs in a function of the user."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pykstreams import Processor, Serdes
from pykstreams.core.record import Record
from pykstreams.http import Address, HttpOptions, HttpServerProcess, app
from pykstreams.http.server import bound
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.state import Stores
from tests.unit.http.served_application import Streams
from tests.unit.http.serving import PATIENCE_S, connected, get, heard
from tests.unit.http.test_store_routes import spread, table
from tests.unit.runtime.global_stores.global_fakes import global_state
from tests.unit.runtime.queries.queried import Application

TEXT = Serdes.string()


class Hang:
    """A function of the user that waits for something."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.over = threading.Event()

    def wait(self) -> None:
        self.begun.set()
        assert self.over.wait(PATIENCE_S)

    def written(self, value: str) -> bytes:
        if value == "hangs":
            self.wait()
        return value.encode()


@contextmanager
def hanging(folder: Path, *, inside_of_store: bool, patience_s: float = PATIENCE_S) -> Iterator[Application]:
    """An application whose global store has one row, while its processor, or the serde of its values, hangs."""
    hang = Hang()

    class Feeding(Processor[str, str, Any, Any]):
        def process(self, record: Record[str, str]) -> None:
            if record.value == "hangs" and not inside_of_store:
                hang.wait()
            self.context.get_state_store("names").put(record.key, record.value)

    values = Serdes.from_functions(hang.written, bytes.decode)
    names = Stores.key_value_store_builder(Stores.in_memory_key_value_store("names"), TEXT, values)
    builder = table().add_global_store(names, "feed", Feeding)
    application = Application(builder, folder / "tasks", partitions=2).start()
    spread(application, ["tea", "milk"], 2)
    state = global_state(builder, folder / "global", patience_s=patience_s)
    state.open()
    state.update([RawMessage("feed", 0, 0, 5, b"a", b"Ann", ())])
    application.global_stores["names"] = LocalStore(
        "names", "global store 'names'", state, lambda: state.readable("names")
    )
    feeding = threading.Thread(target=state.update, args=([RawMessage("feed", 0, 1, 5, b"b", b"hangs", ())],))
    feeding.start()
    try:
        assert hang.begun.wait(PATIENCE_S)
        yield application
    finally:
        hang.over.set()
        feeding.join()
        state.close()
        application.close()


@contextmanager
def served(application: Application, **options: Any) -> Iterator[int]:
    """The port of a server in a process of its own."""
    chosen = HttpOptions(**options)
    made = app(Streams(application), options=chosen, metrics=lambda: (b"up 1\n", "text/plain; version=0.0.4"))
    server = HttpServerProcess(made, bound(Address.parse(":0")), chosen)
    server.start()
    try:
        yield server.port
    finally:
        server.close()


def test_a_processor_that_hangs_between_two_calls_of_its_store_keeps_nobody_from_reading_it(tmp_path: Path) -> None:
    with hanging(tmp_path, inside_of_store=False) as application, served(application) as port:
        assert get(port, "/stores/names/keys/a").json["value"] == "Ann"
        assert len(get(port, "/stores/names/range").json["rows"]) == 1


def test_a_global_store_that_hangs_is_unavailable_and_all_else_is_answered_meanwhile(tmp_path: Path) -> None:
    with hanging(tmp_path, inside_of_store=True, patience_s=0.5) as application, served(application) as port:
        with connected(port) as waiting:
            waiting.sendall(b"GET /stores/names/keys/a HTTP/1.1\r\nHost: x\r\n\r\n")
            for path in ("/health/live", "/health/ready", "/stores/prices/keys/tea", "/metrics"):
                assert (path, get(port, path).status) == (path, 200)
            refused = heard(waiting)
        ranges = [get(port, "/stores/names/range") for _ in range(3)]

    assert refused is not None
    for answer in (refused, *ranges):
        assert (answer.status, answer.problem, answer.headers["retry-after"]) == (503, "unavailable", "1")
        assert answer.json["detail"].startswith("global stores could not be read")
        assert "ask again, and look for" in answer.json["detail"]
