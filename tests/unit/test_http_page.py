"""``docs/guides/http.md`` names every route, parameter, problem and limit."""

from __future__ import annotations

import re
from pathlib import Path

from pykstreams.http import HttpOptions, app
from pykstreams.http.problems import problem_kinds
from tests.docs.pages import Page
from tests.unit.http.served_application import Streams
from tests.unit.http.test_store_routes import table
from tests.unit.runtime.queries.queried import Application

PAGE = Page("docs/guides/http.md").text


def test_the_page_names_the_routes_and_their_parameters(tmp_path: Path) -> None:
    served = app(Streams(Application(table(), tmp_path)), metrics=lambda: (b"", ""))
    rows = [line.split("|")[1].strip().strip("`") for line in PAGE.splitlines() if line.startswith("| `/")]

    assert sorted(rows) == sorted(route.path for route in served.routes)
    for name in {one.name for route in served.routes for one in route.parameters if one.place == "query"}:
        assert re.search(rf"`{name}[=`]", PAGE), name


def test_the_page_names_the_problems_with_their_status() -> None:
    found = {
        kind: int(status)
        for kinds, status in re.findall(r"^\| (`[a-z].*`) \| (\d{3})", PAGE, re.MULTILINE)
        for kind in re.findall(r"`([\w-]+)`", kinds)
    }

    assert found == {kind: status for kind, status, _ in problem_kinds()}


def test_the_limits_of_the_page_are_those_of_the_options() -> None:
    options = HttpOptions()

    assert f"{options.default_rows} by default, {options.max_rows} at most" in PAGE
    assert (options.readers, options.waiting, options.timeout_ms, options.max_answer_bytes) == (2, 64, 15_000, 8 << 20)
    assert "two threads of their own, never in a worker's; 64 more may wait" in PAGE
    assert "| an answer | 15 s at most, then it is read no further, and 8 MiB |" in PAGE
    assert (options.client_timeout_ms, options.max_connections, options.max_body_bytes) == (10_000, 512, 64 << 10)
    assert "| a client | 10 s to send its request, to take the answer," in PAGE
    assert "bodies of 64 KiB |" in PAGE
    assert "| connections | 512;" in PAGE
    assert options.health_timeout_ms == 2_000
    assert "Health is 503 when the worker has not answered its HTTP process in 2 s" in PAGE
    assert options.peer_timeout_ms == 3_000
    assert "at most 3 s" in PAGE
