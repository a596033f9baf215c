"""``pykstreams check`` on a real broker: questions are answered, missing topics are found, and made by ``topics``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykstreams.cli.app import cli

pytestmark = pytest.mark.integration


def test_check_finds_what_topics_create_cures(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    name = make_name("check")
    file = tmp_path / "app.py"
    file.write_text(
        f"""
from pykstreams import Serdes, StreamsBuilder
application_id = "{name}"
config = {{"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}}
builder = StreamsBuilder()
builder.stream("{name}-in").group_by(lambda key, value: value).count().to_stream().to("{name}-out")
""",
        encoding="utf-8",
    )
    settings = [str(file), "--bootstrap-servers", bootstrap_servers]
    runner = CliRunner()
    checking = ["check", *settings, "--set", "group.protocol=streams", "--set", "processing.guarantee=exactly_once_v2"]

    before = runner.invoke(cli, checking)
    made = runner.invoke(cli, ["topics", *settings, "--create", "--partitions", "3", "--replication-factor", "1"])
    after = runner.invoke(cli, checking)

    assert before.exit_code == 2
    assert f"error [topics] {name}-in: does not exist" in before.output
    assert f"error [topics] {name}-out: does not exist" in before.output
    assert "not checked" not in before.output
    assert made.exit_code == 0, made.output
    assert [line.rpartition(" with ")[2] for line in made.output.splitlines()] == ["3 partitions"] * 4
    assert after.exit_code == 0, after.output
    assert after.output.splitlines()[-1].startswith("0 errors")
