"""Where settings come from, which source wins, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykstreams.cli.settings import (
    Source,
    combine,
    from_environment,
    from_file,
    from_pairs,
    read_properties,
    unknown_variables,
)
from pykstreams.core.errors import ConfigError


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_set_wins_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "a.toml", "commit.interval.ms = 1\npoll.ms = 1\nclient.id = 'file'\n")
    config = combine(
        [
            Source("script", {"client.id": "script", "application.id": "script"}),
            from_file(file),
            from_environment({"PYKSTREAMS_COMMIT_INTERVAL_MS": "2", "PYKSTREAMS_POLL_MS": "2"}),
            from_pairs(["commit.interval.ms=3"]),
        ]
    )

    assert (config.commit_interval_ms, config.poll_ms) == (3, 2)
    assert (config.client_id, config.application_id) == ("file", "script")


def test_texts_are_read_in_the_type_of_their_setting() -> None:
    config = combine([from_pairs(["poll.ms=50", "enable.metrics.push=false", "bootstrap.servers=a:1,b:2"])])

    assert (config.poll_ms, config["enable.metrics.push"]) == (50, False)
    assert config.bootstrap_servers == ("a:1", "b:2")


def test_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    text = r"""
# a comment
! another
application.id=shop
  bootstrap.servers : a:9092,\
                      b:9092
client.id till
app.path = C\:\\data\tx
app.unicode = \u00e9t\u00E9
app.empty
app.equals = a=b
app.key\ with\=signs = x
"""

    assert dict(read_properties(text)) == {
        "application.id": "shop",
        "bootstrap.servers": "a:9092,b:9092",
        "client.id": "till",
        "app.path": "C:\\data\tx",
        "app.unicode": "été",
        "app.empty": "",
        "app.equals": "a=b",
        "app.key with=signs": "x",
    }


def test_a_last_line_that_is_continued_is_read() -> None:
    assert dict(read_properties("client.id=a\\")) == {"client.id": "a"}


def test_dotted_keys_and_tables_of_toml_are_dotted_names(tmp_path: Path) -> None:
    text = 'bootstrap.servers = ["a:1"]\n[consumer]\nfetch.min.bytes = 5\n"check.crcs" = true\n'
    file = write(tmp_path, "a.toml", text)

    assert from_file(file).settings == {
        "bootstrap.servers": ["a:1"],
        "consumer.fetch.min.bytes": 5,
        "consumer.check.crcs": True,
    }


def test_variables_are_keywords_in_upper_case() -> None:
    source = from_environment(
        {
            "PATH": "/bin",
            "PYKSTREAMS_CONSUMER_FETCH_MIN_BYTES": "5",
            "PYKSTREAMS_SASL_PASSWORD": "x",
            "PYKSTREAMS_APP_REGION_NAME": "north",
            "PYKSTREAMS_RACK_AWARE_ASSIGNMENT_TRAFFIC_COST": "1",
        }
    )

    assert source.settings == {
        "app.region.name": "north",
        "consumer.fetch.min.bytes": "5",
        "rack.aware.assignment.traffic_cost": "1",
        "sasl.password": "x",
    }


def test_unknown_variables_are_left_out_and_told_with_the_nearest_name() -> None:
    environment = {
        "PYKSTREAMS_COMIT_INTERVAL_MS": "1",
        "PYKSTREAMS_CONSUMER_FETCH_MIN_BITES": "1",
        "PYKSTREAMS_SHOP_PORT_80_TCP_ADDR": "10.0.0.1",
        "PYKSTREAMS_SHOP_SERVICE_HOST": "10.0.0.1",
        "PYKSTREAMS_POLL_MS": "5",
        "PATH": "/bin",
    }

    assert from_environment(environment).settings == {"poll.ms": "5"}
    assert list(unknown_variables(environment)) == [
        "environment variable PYKSTREAMS_COMIT_INTERVAL_MS names no setting and is ignored; did you mean "
        "PYKSTREAMS_COMMIT_INTERVAL_MS?",
        "environment variable PYKSTREAMS_CONSUMER_FETCH_MIN_BITES names no setting and is ignored; did you mean "
        "PYKSTREAMS_CONSUMER_FETCH_MIN_BYTES?",
        "environment variable PYKSTREAMS_SHOP_PORT_80_TCP_ADDR names no setting and is ignored",
        "environment variable PYKSTREAMS_SHOP_SERVICE_HOST names no setting and is ignored",
    ]


@pytest.mark.parametrize("pair", ["poll.ms", "=5", ""])
def test_a_pair_without_key_or_value_is_an_error(pair: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_pairs([pair])

    assert str(caught.value) == (f"--set {pair!r} is not of the form key=value; write --set commit.interval.ms=5000")


def test_a_wrong_value_names_its_source(tmp_path: Path) -> None:
    file = write(tmp_path, "a.properties", "poll.ms=soon\n")

    with pytest.raises(ConfigError) as caught:
        combine([from_file(file), from_pairs([])])

    assert str(caught.value) == (
        f"setting 'poll.ms' has the value 'soon'; expected a whole number of milliseconds, at least 0 [{file}]"
    )


def test_wrong_values_of_all_sources_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        combine([from_environment({"PYKSTREAMS_POLL_MS": "x"}), from_pairs(["pol.ms=1"])])

    assert str(caught.value).splitlines() == [
        "2 settings are wrong:",
        "- setting 'poll.ms' has the value 'x'; expected a whole number of milliseconds, at least 0 [environment]",
        "- unknown setting 'pol.ms'; did you mean 'poll.ms'? (settings of your own go under 'app.') [--set]",
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "", "has the suffix '.yaml'; expected .properties or .toml"),
        ("a.toml", "x = = 1", "is no TOML: "),
    ],
)
def test_a_file_that_cannot_be_understood_is_an_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = write(tmp_path, name, text)

    with pytest.raises(ConfigError) as caught:
        from_file(file)

    assert str(caught.value).startswith(f"configuration file {str(file)!r} {message}")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: .*No such file"):
        from_file(tmp_path / "a.toml")
