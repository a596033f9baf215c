"""The files of ``docs/guides/deployment.md`` are those of ``pykstreams init``, and its figures measured ones."""

from __future__ import annotations

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from pykstreams.cli.app import cli
from pykstreams.cli.exit_codes import ExitCode
from pykstreams.cli.settings import from_environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "deployment.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    result = CliRunner().invoke(cli, ["init", "shop", "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


def unit() -> ConfigParser:
    parsed = ConfigParser(interpolation=None)
    parsed.read_string(blocks("ini")[0])
    return parsed


def test_files_of_the_page_are_those_of_a_new_project(project: Path) -> None:
    assert blocks("dockerfile") == [(project / "Dockerfile").read_text(encoding="utf-8")]
    assert blocks("yaml")[0] == (project / "kubernetes.yaml").read_text(encoding="utf-8")


def test_unit_starts_a_command_with_options_that_there_are() -> None:
    program, command, *words = shlex.split(unit()["Service"]["ExecStart"])
    found = cli.get_command(click.Context(cli), command)

    assert program.endswith("/bin/pykstreams")
    assert found is not None
    assert {word for word in words if word.startswith("--")} <= {one for each in found.params for one in each.opts}


def test_unit_stays_down_after_errors_that_come_again() -> None:
    stays_down = {ExitCode(int(code)) for code in unit()["Service"]["RestartPreventExitStatus"].split()}

    assert stays_down == {ExitCode.USAGE, ExitCode.PROCESSING}


def test_variables_of_the_page_are_settings() -> None:
    statefulset = list(yaml.safe_load_all(blocks("yaml")[0]))[1]
    [container] = statefulset["spec"]["template"]["spec"]["containers"]
    names = [one["name"] for one in (*container["env"], *yaml.safe_load(blocks("yaml")[1])) if one["name"] != "POD"]
    names += re.findall(r"`(PYKSTREAMS_\w+)=", PAGE)

    assert len(names) == 4
    assert len(from_environment(dict.fromkeys(names, "1")).settings) == len(names)


@pytest.mark.parametrize(
    ("workload", "figure"),
    re.findall(r"^\| [^|]+ \| `([\w-]+)` \| ([\d.]+) \|$", PAGE, re.MULTILINE),
    ids=lambda one: one,
)
def test_figures_of_the_page_are_those_of_the_benchmarks(workload: str, figure: str) -> None:
    assert re.findall(rf"^\| `{workload}` \| ([\d.]+) \(", MEASURED, re.MULTILINE)[0] == figure


def test_example_of_the_page_counts_with_a_figure_of_its_table() -> None:
    [figure] = re.findall(r"cores\(50_000, ([\d.]+)\)", PAGE)

    assert f"| `w2` | {figure} |" in PAGE
