"""The live page in a real browser: what a user sees of an application under load."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from pykstreams import Consumed, Grouped, Serdes, StreamsBuilder
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.http import Address, HttpOptions, HttpServer, app
from pykstreams.http.server import bound
from pykstreams.runtime.health import TaskHealth
from pykstreams.runtime.worker.thread_metadata import TaskMetadata, ThreadMetadata
from tests.unit.http.served_application import Streams
from tests.unit.runtime.queries.queried import TOPIC, Application

TEXT = Serdes.string()
PATIENCE_S = 20
PHONE, DESK = (390, 844), (1400, 1000)
MARKUP = "<b>not bold</b>"


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    driver = shutil.which("chromedriver")
    if driver is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            raise AssertionError("there is no chromedriver; install the packages chromium and chromium-driver")
        pytest.skip("there is no chromedriver; install the packages chromium and chromium-driver")
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--force-device-scale-factor=1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    yield made
    made.quit()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[Streams, HttpServer]]]:
    stops: list[Callable[[], None]] = []

    def build(builder: StreamsBuilder, topic: str = TOPIC, **options: Any) -> tuple[Streams, HttpServer]:
        settings = {"application.id": "page-views"}
        application = Application(builder, tmp_path, topic=topic, settings=settings).start()
        streams, chosen = Streams(application), HttpOptions(**options)
        streams.tasks = {TaskId(0, 0): TaskHealth(True, 0), TaskId(0, 1): TaskHealth(False, 1_200)}
        streams.threads = [thread(topic)]
        server = HttpServer(app(streams, options=chosen), bound(Address.parse(":0")), chosen)
        server.start()
        stops.extend((server.close, application.close))
        return streams, server

    yield build
    for stop in stops:
        stop()


def thread(topic: str = TOPIC) -> ThreadMetadata:
    place = TopicPartition(topic, 0)
    task = TaskMetadata(TaskId(0, 0), frozenset({place}), {place: 5}, {place: 42}, None)
    name = "page-views-1-StreamThread-1"
    return ThreadMetadata("RUNNING", name, frozenset({task}), frozenset(), "c", "r", frozenset({"p"}), "a")


def counting(steps: int = 0) -> StreamsBuilder:
    """Counts what comes, behind so many steps in rows of five."""
    builder = StreamsBuilder()
    stream = builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT, name="page-views-source"))
    first = stream
    for number in range(steps):
        stream = (first if number % 5 == 0 else stream).filter(lambda key, value: True, name=f"step-{number:02}")
    first.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(materialized="counts", name="counted")
    return builder


def opened(browser: WebDriver, server: HttpServer, size: tuple[int, int] = DESK) -> None:
    browser.set_window_size(*size)
    browser.get("about:blank")  # ends the page of the test before, which goes on asking its own server
    logged(browser, "performance")
    logged(browser, "browser")
    browser.get(f"http://127.0.0.1:{server.port}/")
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#drawing svg"))
    until(browser, lambda: text(browser, "#instances") == "1")


def logged(browser: WebDriver, kind: str) -> list[dict[str, Any]]:
    """What the browser logged since the last call."""
    found: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return found


def until(browser: WebDriver, condition: Callable[[], object]) -> None:
    WebDriverWait(browser, PATIENCE_S, 0.1).until(lambda _: condition())


def text(browser: WebDriver, selector: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, selector).text


def feed_while(browser: WebDriver, streams: Streams, condition: Callable[[], object], since_ms: int = 0) -> None:
    """Feeds records until the page shows something of them."""
    fed = 0

    def shown() -> object:
        nonlocal fed
        streams.application.feed(*((f"user-{one % 7}", "/home", since_ms + fed + one) for one in range(50)))
        fed += 50
        return condition()

    until(browser, shown)


def test_rates_lag_and_tasks_are_seen(browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]) -> None:
    streams, server = serve(counting())
    opened(browser, server)

    feed_while(browser, streams, lambda: "/s" in text(browser, "#drawing .processor[data-name='page-views-source']"))

    assert text(browser, "h1") == "page-views"
    assert text(browser, "#lag") == "37"
    assert "lag 37" in text(browser, f"#drawing .topic[data-name='{TOPIC}']")
    rows = [row.text for row in browser.find_elements(By.CSS_SELECTOR, "#tasks tbody tr")]
    assert "0_0" in rows[0] and "StreamThread-1 running" in rows[0]
    assert "restoring, 1200 to go" in rows[1]


def test_a_key_of_a_store_is_looked_up(browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]) -> None:
    streams, server = serve(counting())
    streams.application.feed(("ann", "/home", 1), ("ann", "/cart", 2))
    opened(browser, server)
    browser.find_element(By.ID, "key").send_keys("ann\n")

    until(browser, lambda: '"value": 2' in text(browser, "#found"))

    browser.find_element(By.ID, "key").send_keys("nobody\n")
    until(browser, lambda: "has nothing for 'annnobody'" in text(browser, "#found"))


def test_sixty_steps_stay_apart_and_readable(
    browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]
) -> None:
    _, server = serve(counting(60))
    opened(browser, server)

    boxes = [
        (one.rect["x"], one.rect["y"], one.rect["width"], one.rect["height"])
        for one in browser.find_elements(By.CSS_SELECTOR, "#drawing .processor[data-name] .shape")
    ]

    assert len(boxes) == 62
    for number, (x, y, width, height) in enumerate(boxes):
        assert not any(
            x < x2 + w2 and x2 < x + width and y < y2 + h2 and y2 < y + height for x2, y2, w2, h2 in boxes[number + 1 :]
        )
    browser.find_element(By.ID, "larger").click()
    enlarged = browser.find_element(By.CSS_SELECTOR, "#drawing .processor[data-name] .shape").rect["width"]
    assert enlarged > boxes[0][2] * 1.2
    browser.find_element(By.ID, "whole").click()


def test_a_chosen_step_tells_its_facts(browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]) -> None:
    _, server = serve(counting())
    opened(browser, server)

    browser.find_element(By.CSS_SELECTOR, "#drawing .processor[data-name='counted']").click()

    assert text(browser, "#node").split()[:2] == ["name", "counted"]


def test_a_phone_shows_all_of_it_without_scrolling_aside(
    browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]
) -> None:
    _, server = serve(counting(20))
    opened(browser, server, PHONE)

    width, shown = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")

    assert width <= shown
    assert browser.find_element(By.ID, "log-title").size["width"] > 0


def test_a_phone_begins_with_steps_that_can_be_read_and_shows_all_when_asked(
    browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]
) -> None:
    _, server = serve(counting(60))
    opened(browser, server, PHONE)
    source = "#drawing .processor[data-name='page-views-source']"

    assert browser.find_element(By.CSS_SELECTOR, f"{source} text").rect["height"] >= 8
    assert inside(browser, source)
    assert not inside(browser, "#drawing .processor[data-name='step-00']")

    browser.find_element(By.ID, "whole").click()
    assert inside(browser, "#drawing .processor[data-name='step-00']")
    assert inside(browser, "#drawing .processor[data-name='step-59']")


def inside(browser: WebDriver, selector: str) -> bool:
    """Whether an element is within the frame of the drawing."""
    frame = browser.find_element(By.ID, "drawing").rect
    found = browser.find_element(By.CSS_SELECTOR, selector).rect
    return bool(frame["x"] <= found["x"] and found["x"] + found["width"] <= frame["x"] + frame["width"])


def test_two_fingers_scale_the_drawing_and_one_moves_it(
    browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]
) -> None:
    _, server = serve(counting(20))
    opened(browser, server, PHONE)
    source = "#drawing .processor[data-name='page-views-source'] .shape"
    before = browser.find_element(By.CSS_SELECTOR, source).rect

    touch(browser, (1, "down", 100, 300), (2, "down", 200, 300), (2, "move", 300, 300))
    touch(browser, (1, "up", 100, 300), (2, "up", 300, 300))
    larger = browser.find_element(By.CSS_SELECTOR, source).rect
    assert larger["width"] == pytest.approx(2 * before["width"], abs=2)

    touch(browser, (1, "down", 100, 300), (1, "move", 130, 300), (1, "up", 130, 300))
    assert browser.find_element(By.CSS_SELECTOR, source).rect["x"] == pytest.approx(larger["x"] + 30, abs=2)


def touch(browser: WebDriver, *events: tuple[int, str, int, int]) -> None:
    """Touches the drawing with fingers (number, what it does, x, y)."""
    for pointer, kind, x, y in events:
        told = {"pointerId": pointer, "pointerType": "touch", "clientX": x, "clientY": y, "bubbles": True}
        script = "document.getElementById('drawing').dispatchEvent(new PointerEvent(arguments[0], arguments[1]))"
        browser.execute_script(script, f"pointer{kind}", told)


def test_names_and_lines_are_text_and_never_markup(
    browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]
) -> None:
    _, server = serve(counting())
    opened(browser, server)
    logging.getLogger("pykstreams.page").warning("a line with %s", MARKUP)

    until(browser, lambda: MARKUP in text(browser, "#log"))

    assert not browser.find_elements(By.CSS_SELECTOR, "#log b")


def test_the_page_asks_for_the_token_and_works_with_it(
    browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]
) -> None:
    _, server = serve(counting(), token="secret")
    browser.get(f"http://127.0.0.1:{server.port}/")
    until(browser, lambda: browser.find_element(By.ID, "token-text").is_displayed())

    browser.find_element(By.ID, "token-text").send_keys("secret\n")

    until(browser, lambda: text(browser, "h1") == "page-views")
    assert not browser.find_element(By.ID, "token-text").is_displayed()


def test_no_request_leaves_the_host_and_nothing_is_refused_or_wrong(
    browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]
) -> None:
    streams, server = serve(counting())
    opened(browser, server)
    feed_while(browser, streams, lambda: "/s" in text(browser, "#drawing .processor[data-name='page-views-source']"))

    asked = {
        message["params"]["request"]["url"]
        for entry in logged(browser, "performance")
        if (message := _message(entry))["method"] == "Network.requestWillBeSent"
    }

    assert asked
    assert {url for url in asked if not url.startswith((f"http://127.0.0.1:{server.port}/", "data:"))} == set()
    assert [entry for entry in logged(browser, "browser") if entry["level"] == "SEVERE"] == []


def _message(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(entry["message"])["message"]
    return found


def test_a_server_that_goes_away_is_told(browser: WebDriver, serve: Callable[..., tuple[Streams, HttpServer]]) -> None:
    _, server = serve(counting())
    opened(browser, server)

    server.close()

    until(browser, lambda: "No facts for now" in text(browser, "#problem"))
