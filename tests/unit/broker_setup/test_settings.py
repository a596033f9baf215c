"""Containers and local processes run the same broker: version and settings agree everywhere."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.brokers.settings import (
    CLUSTER_ID,
    KAFKA_IMAGE,
    KAFKA_VERSION,
    ONE_BROKER,
    THREE_BROKERS,
    environment_name,
)

ROOT = Path(__file__).parents[3]
ONE = ROOT / "docker-compose.yml"
THREE = ROOT / "tests/brokers/docker-compose.cluster.yml"


@pytest.mark.parametrize(("file", "settings"), [(ONE, ONE_BROKER), (THREE, THREE_BROKERS)])
def test_compose_file_has_the_settings_of_the_local_broker(file: Path, settings: Mapping[str, str]) -> None:
    _, marked = file.read_text().split("The settings below are those of tests/brokers/settings.py")
    found = re.findall(r'^ +(KAFKA_\w+): "?([\w.]+)"?$', marked.split("KAFKA_HEAP_OPTS")[0], re.MULTILINE)

    assert dict(found) == {environment_name(name): value for name, value in settings.items()}


@pytest.mark.parametrize("file", [ONE, THREE])
def test_compose_file_runs_the_pinned_image(file: Path) -> None:
    text = file.read_text()

    assert re.findall(r"^ +image: (\S+)$", text, re.MULTILINE) == [KAFKA_IMAGE]
    assert re.findall(r'^ +CLUSTER_ID: "(\S+)"$', text, re.MULTILINE) == [CLUSTER_ID]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("scripts/kafka/pom.xml", r"<kafka\.version>(.*)</kafka\.version>"),
        ("scripts/kafka/build-image.sh", r"tag=\$\{1:-apache/kafka:(.*)\}"),
    ],
)
def test_scripts_use_the_same_version(file: str, pattern: str) -> None:
    assert re.findall(pattern, (ROOT / file).read_text()) == [KAFKA_VERSION]


@pytest.mark.parametrize(
    ("setting", "variable"),
    [
        ("offsets.retention.minutes", "KAFKA_OFFSETS_RETENTION_MINUTES"),
        ("a_b.c-d", "KAFKA_A__B_C___D"),
    ],
)
def test_setting_becomes_the_variable_of_the_image(setting: str, variable: str) -> None:
    assert environment_name(setting) == variable
