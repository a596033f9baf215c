"""The live page and ``pykstreams top`` of an application under load, on real brokers: what the documentation shows.

    TAKE_PICTURES=1 pytest -m nightly tests/integration/test_live_pictures.py

writes the pictures of the documentation, too.
"""

from __future__ import annotations

import io
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path

import pytest
from confluent_kafka import Producer
from rich.console import Console
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By

from pykstreams.cli.live.frame import Moment, frame
from pykstreams.cli.live.server import Server
from pykstreams.cli.live.top import asked
from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.ports import free_ports
from tests.brokers.repeated import repeated
from tests.integration.workers import ROOT, Workers
from tests.unit.http.live.test_browser import DESK, PHONE, text, until
from tests.unit.http.live.test_browser import browser as browser

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

PARTITIONS = 4
PICTURES = ROOT / "docs" / "pictures"
BATCH, EVERY_S = 40, 0.02
LATE_EVERY = 400
LATE_MS = 90_000
INTERVAL_S = 2.0

SCRIPT = '''
    """Views of pages counted by user, in windows of a minute, and in sessions."""

    from pykstreams import Consumed, Produced, SessionWindows, StreamsBuilder, TimeWindows

    def build(config):
        builder = StreamsBuilder()
        views = builder.stream("page-views", Consumed(key_serde=str, value_serde=str, name="views"))
        by_user = views.filter(lambda user, page: page != "/health", name="people").group_by_key()
        by_user.count(materialized="views-by-user", name="count-all")
        minutes = by_user.windowed_by(TimeWindows(60_000)).count(materialized="views-by-minute", name="count-by-minute")
        busy = minutes.to_stream(name="minutes").filter(lambda window, count: count >= 100, name="busy")
        busy.to("busy-users", Produced(name="to-busy-users"))
        by_user.windowed_by(SessionWindows(300_000)).count(materialized="visits", name="count-visits")
        return builder.build(config)
'''


@pytest.fixture
def urls(start_broker: Callable[..., Brokers], tmp_path: Path) -> Iterator[list[str]]:
    """Two workers with standby tasks, and views of pages that flow through them; one in 400 is late."""
    bootstrap_servers = start_broker().bootstrap_servers
    create_topic(bootstrap_servers, "page-views", partitions=PARTITIONS)
    create_topic(bootstrap_servers, "busy-users", partitions=PARTITIONS)
    ports = free_ports(2)
    settings = ("num.standby.replicas=1", "metrics.recording.level=DEBUG")
    app = Workers(bootstrap_servers, "page-views", tmp_path, SCRIPT, PARTITIONS, settings)
    with views(bootstrap_servers):
        try:
            for number, port in enumerate(ports, 1):
                app.options = ("--http", f"127.0.0.1:{port}")
                app.start(f"worker-{number}")
            app.wait("both have tasks", lambda: sorted(map(len, app.running().values())) == [2, 2])
            yield [f"http://127.0.0.1:{port}" for port in ports]
        finally:
            app.end()


@contextmanager
def views(bootstrap_servers: str) -> Iterator[None]:
    """Lets 2,000 views a second flow for the length of a block."""
    numbers = count()
    producer = Producer({"bootstrap.servers": bootstrap_servers, "partitioner": "murmur2_random", "linger.ms": 5})

    def send() -> None:
        for number in islice(numbers, BATCH):
            at = time.time_ns() // 1_000_000 - (LATE_MS if number % LATE_EVERY == LATE_EVERY - 1 else 0)
            producer.produce("page-views", "/home", f"user-{number % 97}", timestamp=at)
        producer.poll(0)

    with repeated(send, EVERY_S, "views"):
        yield
    producer.flush(10)


def drawn(browser: WebDriver, processor: str) -> str:
    """What is written in a box of the drawing, also where that has to be moved to be seen."""
    box = browser.find_element(By.CSS_SELECTOR, f"#drawing .processor[data-name='{processor}']")
    return box.get_attribute("textContent") or ""


def test_the_page_shows_an_application_under_load(browser: WebDriver, urls: list[str]) -> None:
    for size, name in ((DESK, "live-page"), (PHONE, "live-page-phone")):
        browser.set_window_size(*size)
        browser.get(urls[0])
        until(browser, lambda: text(browser, "#instances") == "2")
        until(browser, lambda: "/s" in drawn(browser, "views"))
        until(browser, lambda: "late" in drawn(browser, "count-by-minute"))
        tasks = browser.find_element(By.CSS_SELECTOR, "#tasks").text

        assert all(f"0_{partition}" in tasks for partition in range(PARTITIONS))
        assert text(browser, "#problem") == ""
        if "TAKE_PICTURES" in os.environ:
            assert browser.save_screenshot(str(PICTURES / f"{name}.png"))


def test_top_shows_an_application_under_load(urls: list[str]) -> None:
    server = Server(urls[1])
    before = asked(server)
    threading.Event().wait(INTERVAL_S)
    picture = frame(Moment(asked(server), before))
    console = Console(record=True, width=110, file=io.StringIO())
    console.print(picture)
    lines = console.export_text(clear=False).splitlines()

    assert re.search(r" [1-9][\d.]*k? records/s", lines[0]), lines[0]
    assert all(any(f"0_{partition}" in line and "running" in line for line in lines) for partition in range(PARTITIONS))
    assert all(any(url.removeprefix("http://") in line for line in lines) for url in urls)
    if "TAKE_PICTURES" in os.environ:
        drawn = console.export_svg(title="pykstreams top")
        own = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # fonts would be asked for elsewhere
        (PICTURES / "top.svg").write_text(own, encoding="utf-8")
