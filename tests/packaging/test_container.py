"""Images without a compiler: the wheel is installed and used there, and what ``pykstreams init`` writes is deployed."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykstreams.cli.app import cli
from tests.brokers.choice import compose_command
from tests.brokers.ports import free_ports
from tests.packaging.conftest import Released
from tests.packaging.images import ROOT, image_with_wheels, said

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

FIRST_STEPS = Path(__file__).with_name("first_steps.py")
PATIENCE_S = 600.0


@pytest.fixture(scope="module")
def make_image(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Makes the image of a Python, once; needs a Docker daemon (``scripts/kafka/docker-up.sh``)."""
    made: dict[str, str] = {}

    def make(version: str) -> str:
        if version not in made:
            made[version] = image_with_wheels(version, released.wheel, tmp_path_factory.mktemp("image"))
        return made[version]

    return make


def wait_for(what: str, ask: Callable[[], bool], told: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ask():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s\n{told()}"
        time.sleep(0.5)


@pytest.mark.parametrize("version", ["3.11", "3.13", "3.14"])
def test_first_steps_are_taken_where_there_is_no_compiler(
    version: str, make_image: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(
        f"FROM {make_image(version)}\n"
        "RUN ! command -v cc && ! command -v gcc && ! command -v clang\n"
        'RUN pip install --no-cache-dir "pykstreams[http,protobuf]" pytest\n'
        "COPY first_steps.py /\n"
    )
    (tmp_path / "first_steps.py").write_text(FIRST_STEPS.read_text())
    name = f"pykstreams.first-steps:{version}"
    said("docker", "build", "--quiet", "--tag", name, str(tmp_path))

    told = said("docker", "run", "--rm", "--network", "none", name, "python", "/first_steps.py")

    assert told.startswith(f"first steps taken with Python {version}.")


def test_image_of_the_examples_plays_one_and_runs_it_until_it_is_stopped(make_image: Callable[[str], str]) -> None:
    name = "pykstreams.examples"
    base = f"PYTHON={make_image('3.13')}"
    said("docker", "build", "--quiet", "--tag", name, str(ROOT / "examples"), "--build-arg", base)
    alone = ("--network", "none", name)

    assert "word-counts: symmetry = 1" in said("docker", "run", "--rm", *alone)

    running = ("pykstreams", "run", "examples/word_count/word_count.py", "--embedded")
    container = said("docker", "run", "--detach", *alone, *running).strip()
    try:
        wait_for(
            "the example runs",
            lambda: "task 0_0 runs" in said("docker", "logs", container),
            lambda: said("docker", "logs", container),
        )
        said("docker", "stop", "--time", "60", container)

        assert said("docker", "inspect", "--format", "{{ .State.ExitCode }}", container).strip() == "0"
    finally:
        said("docker", "rm", "--force", container)


@pytest.fixture
def deployed(make_image: Callable[[str], str], tmp_path: Path) -> Iterator[tuple[Callable[..., str], str]]:
    """The project of ``pykstreams init``, started by its compose file on free ports; compose, and where it serves."""
    project = tmp_path / "shop"
    cli.main(["init", "shop-totals", "--folder", str(project)], standalone_mode=False)
    said(str(ROOT / "scripts/kafka/build-image.sh"))
    kafka, http = free_ports(2)
    file = project / "compose.yaml"
    text = file.read_text()
    for old, new in (
        ("127.0.0.1:9092", f"127.0.0.1:{kafka}"),
        ("127.0.0.1:8080:", f"127.0.0.1:{http}:"),
        ("build: .", f"build: {{context: ., args: {{PYTHON: '{make_image('3.13')}'}}}}"),
    ):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    found = compose_command()
    assert found is not None, "needs Docker's compose (scripts/kafka/docker-up.sh)"
    command = [*found.split(), "--project-name", f"shop{kafka}", "--file", str(file)]

    def compose(*arguments: str) -> str:
        return said(*command, *arguments, folder=project)

    try:
        compose("up", "--detach", "--build")
        yield compose, f"http://127.0.0.1:{http}"
    finally:
        compose("down", "--volumes", "--timeout", "60", "--rmi", "local")


def test_project_is_deployed_by_its_compose_file_and_sums_up(deployed: tuple[Callable[..., str], str]) -> None:
    """With the commands of its README: a broker, its topics and the application, an order sent, and a sum read."""
    compose, address = deployed
    wait_for(
        "the application is ready", lambda: answer_of(f"{address}/health/ready") is not None, lambda: compose("logs")
    )

    producer = (
        "/opt/kafka/bin/kafka-console-producer.sh --bootstrap-server localhost:9092 --topic orders "
        "--reader-property parse.key=true --reader-property key.separator=:"
    )
    order = """echo '1:{"customer":"ann","cents":250}'"""
    compose("exec", "-T", "kafka", "bash", "-c", f"{order} | {producer}")

    wait_for("the sum is there", lambda: sum_of(f"{address}/stores/spent/keys/ann") == 250, lambda: compose("logs"))


def answer_of(url: str) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def sum_of(url: str) -> object:
    answer = answer_of(url)
    return None if answer is None else json.loads(answer).get("value")
