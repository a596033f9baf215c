"""``pykstreams init``: what it writes runs, and passes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pykstreams.cli.app import cli
from pykstreams.cli.project.init import FILES
from pykstreams.core.config import StreamsConfig
from pykstreams.dsl.script import load_script

ROOT = Path(__file__).parents[4]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    result = CliRunner().invoke(cli, ["init", "shop-totals", "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


def run(project: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=project, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_test_passes(project: Path) -> None:
    assert "1 passed" in run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_the_topology_has_the_name_and_types(project: Path) -> None:
    assert load_script(str(project / "shop_totals.py")).settings == {"application.id": "shop-totals"}

    types = json.loads(run(project, "-m", "pykstreams", "types", "shop_totals.py", "--format", "json"))

    assert {"name": "spent-by-customer", "key": "str", "value": "int"}.items() <= types[-2].items()


def test_every_file_is_written_with_the_names_of_the_project(project: Path) -> None:
    written = {path.name: path.read_text() for path in project.iterdir()}

    assert sorted(written) == sorted(path.format(module="shop_totals") for path in FILES.values())
    for name, text in written.items():
        assert "$name" not in text and "$module" not in text, name
    assert "image: shop-totals:latest" in written["kubernetes.yaml"]
    assert '"$(POD).shop-totals:8080"' in written["kubernetes.yaml"]
    assert 'pip install --no-cache-dir "$PYKSTREAMS"' in written["Dockerfile"]
    assert '--topic "$$topic"' in written["compose.yaml"]


def test_its_settings_are_settings(project: Path) -> None:
    from pykstreams.cli.settings import from_file

    config = StreamsConfig({**from_file(project / "settings.toml").settings, "application.id": "a"})

    assert (config.commit_interval_ms, config.exactly_once) == (5_000, True)
    assert config["consumer.auto.offset.reset"] == "earliest"


def test_its_state_is_kept_inside_of_it_and_out_of_git(project: Path) -> None:
    from pykstreams.cli.settings import from_file

    assert from_file(project / "settings.toml").settings["state.dir"] == "state"
    assert "state/" in (project / ".gitignore").read_text().splitlines()
    assert '"--state-dir", "/home/streams/state"' in (project / "Dockerfile").read_text()


def test_the_commands_of_its_readme_are_there(project: Path) -> None:
    commands = re.findall(r"^pykstreams (\w+)", (project / "README.md").read_text(), re.MULTILINE)

    assert {"describe", "types", "run", "diff", "check"} == set(commands)
    for name in commands:
        assert name in cli.list_commands(None)  # type: ignore[arg-type]


def test_no_file_is_written_over(project: Path) -> None:
    (project / "shop_totals.py").write_text("mine")

    result = CliRunner().invoke(cli, ["init", "shop-totals", "--folder", str(project)])

    assert result.exit_code == 2
    assert "is there already; take another folder with --folder" in result.output
    assert (project / "shop_totals.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["Shop", "shop totals", "-shop", "shop_totals", "../shop", ""])
def test_a_name_that_containers_do_not_take_is_refused(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["init", "--folder", str(tmp_path / "new"), "--", name])

    assert result.exit_code == 2
    assert "is no name for all that it names" in result.output
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["class", "json", "calendar", "pykstreams", "pytest"])
def test_a_name_that_its_module_cannot_have_is_refused(name: str, tmp_path: Path) -> None:
    """A module of a keyword cannot be imported, and one of another's name is imported in its place."""
    result = CliRunner().invoke(cli, ["init", name, "--folder", str(tmp_path / "new")])

    assert result.exit_code == 2
    assert f"'{name}' is the name of something else in Python; take another one, such as '{name}-app'" in result.output
    assert not (tmp_path / "new").exists()


def test_its_compose_file_can_be_read_and_runs_the_application_after_its_topics(project: Path) -> None:
    compose = yaml.safe_load((project / "compose.yaml").read_text())

    services = compose["services"]
    assert set(services) == {"kafka", "topics", "shop-totals"}
    assert services["shop-totals"]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    assert services["shop-totals"]["volumes"] == ["state:/home/streams/state"]
    assert set(compose["volumes"]) == {"state"}


def test_its_stateful_set_can_be_read_and_fits_the_service_and_the_image(project: Path) -> None:
    service, stateful = yaml.safe_load_all((project / "kubernetes.yaml").read_text())

    assert (service["kind"], stateful["kind"]) == ("Service", "StatefulSet")
    assert stateful["spec"]["serviceName"] == service["metadata"]["name"]
    pods = stateful["spec"]["template"]
    assert pods["metadata"]["labels"] == service["spec"]["selector"] == stateful["spec"]["selector"]["matchLabels"]
    (container,) = pods["spec"]["containers"]
    (claim,) = stateful["spec"]["volumeClaimTemplates"]
    (mount,) = container["volumeMounts"]
    assert mount["name"] == claim["metadata"]["name"]
    image = (project / "Dockerfile").read_text()
    assert f'"--state-dir", "{mount["mountPath"]}"' in image
    assert f"EXPOSE {container['ports'][0]['containerPort']}\n" in image
    probes = {container[name]["httpGet"]["path"] for name in ("readinessProbe", "livenessProbe")}
    assert probes == {"/health/ready", "/health/live"}
