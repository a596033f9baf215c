"""The commands as a user calls them: output, messages and exit codes. No broker is needed."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import struct
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykstreams import Serdes, StreamsBuilder, StreamsConfig, Topology
from pykstreams._version import __version__
from pykstreams.cli.app import _EPILOG, _HELP, cli
from pykstreams.cli.exit_codes import ExitCode, exit_code
from pykstreams.cli.workers import run as run_module
from pykstreams.core.errors import (
    BootstrapError,
    ClusterError,
    ClusterUnavailableError,
    ConfigError,
    DeliveryError,
    LockError,
    MisconfiguredInternalTopicError,
    MissingInternalTopicsError,
    MissingSinkTopicError,
    MissingSourceTopicError,
    ProcessingError,
    SerdeError,
    StreamsError,
    TaskAssignmentError,
    TopologyError,
)
from pykstreams.dsl.script import ScriptError, load_script
from pykstreams.testing import EmbeddedCluster, TopologyTestDriver

Invoke = Callable[..., Result]

TEXT = """
from pykstreams import Serdes, StreamsBuilder
config = {"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}
"""

COUNT = f"""{TEXT}
application_id = "shop"
def build():
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda k, v: v).count().to_stream().to("out")
    return builder
"""


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Invoke]:
    """Calls the program in an empty folder, with none but the folder of the state among the settings in the
    environment: what earlier applications of the same id have left there would be compared with these."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("pykstreams.cli.logs.configure_logging", lambda level, worker, topology, **_: None)
    before = set(sys.modules)

    def call(*arguments: str, env: dict[str, str] | None = None) -> Result:
        around = {"PYKSTREAMS_STATE_DIR": str(tmp_path / "state"), **(env or {})}
        return CliRunner(env=around).invoke(cli, list(arguments), catch_exceptions=False)

    yield call
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


class Worker:
    """Stands for KafkaStreams: remembers what it was made with, and ends as it is told."""

    made: list[tuple[Topology, StreamsConfig]]
    bootstraps: list[tuple[str | None, bool]]
    loaded: list[str]
    error: Exception | None = None

    def __init__(
        self, topology: Topology, config: StreamsConfig, *, bootstrap: str | None, reset_offsets: bool
    ) -> None:
        self.made.append((topology, config))
        self.bootstraps.append((bootstrap, reset_offsets))

    def load_bootstrap(self, folder: str) -> None:
        self.loaded.append(folder)

    def run(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> type[Worker]:
    class Fresh(Worker):
        made: list[tuple[Topology, StreamsConfig]] = []  # noqa: RUF012 - one per test
        bootstraps: list[tuple[str | None, bool]] = []  # noqa: RUF012
        loaded: list[str] = []  # noqa: RUF012

    module = types.ModuleType("pykstreams.runtime.streams")
    module.KafkaStreams = Fresh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pykstreams.runtime.streams", module)
    return Fresh


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """What workers were asked for, instead of starting them."""
    started: list[tuple[int, list[str]]] = []

    def supervise(count: int, arguments: list[str], look: object) -> int:
        started.append((count, arguments))
        return 4

    monkeypatch.setattr(run_module, "_supervise", supervise)
    return started


def write(folder: Path, text: str = COUNT, name: str = "shop_job.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def test_version_is_the_packages(invoke: Invoke) -> None:
    assert invoke("--version").output == f"pykstreams {__version__}\n"


def test_help_names_every_command_and_every_exit_code(invoke: Invoke) -> None:
    output = invoke("--help").output

    for command in ("bootstrap", "describe", "dlq", "run", "topics"):
        assert f"\n  {command} " in output
    for code in ExitCode:
        assert re.search(rf"^ +{code.value}  \w", output, re.MULTILINE)


def test_the_script_in_the_help_runs(invoke: Invoke, tmp_path: Path) -> None:
    lines = _HELP.split("# word_count.py\n")[1].split("\n\n")[0].splitlines()
    write(tmp_path, "\n".join(line.removeprefix("    ") for line in lines), "word_count.py")
    text = Serdes.string()

    script = load_script("word_count.py")
    config = StreamsConfig(script.settings)
    with TopologyTestDriver(script.build(config), config) as driver:
        driver.create_input_topic("lines", text, text).pipe_input("k", "to be or not to be")
        counted = driver.create_output_topic("word-counts", text, Serdes.long()).read_key_values_to_dict()

    assert counted == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_the_commands_of_the_help_run(
    invoke: Invoke,
    tmp_path: Path,
    worker: type[Worker],
    supervised: list[tuple[int, list[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pykstreams.runtime.clients.admin.TOOL_PATIENCE_S", 0.1)
    lines = _HELP.split("# word_count.py\n")[1].split("\n\n")[0].splitlines()
    write(tmp_path, "\n".join(line.removeprefix("    ") for line in lines), "word_count.py")
    commands = re.findall(r"^    pykstreams (.*?)(?: *#.*)?$", _HELP, re.MULTILINE)

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{unused.getsockname()[1]}"  # there may be somebody at the address of the help
        codes = {command: invoke(*command.replace("localhost:9092", nobody).split()).exit_code for command in commands}

    assert codes == {
        "describe word_count.py": 0,
        "topics word_count.py": 0,
        "check word_count.py --bootstrap-servers localhost:9092": 3,  # no broker is there
        "run word_count.py --bootstrap-servers localhost:9092": 0,
        "run word_count.py --embedded": 4,  # what the supervisor of the test says
    }
    assert len(worker.made) == 1


BARE = """
from pykstreams import Consumed, Serdes, StreamsBuilder
application_id = "shop"
builder = StreamsBuilder()
text = Serdes.string()
words = builder.stream("in", Consumed(key_serde=text)).group_by(lambda k, v: v)
words.count(materialized="counts").to_stream().to("out")
"""


@pytest.mark.parametrize("command", ["describe", "topics", "run --bootstrap-servers a:1", "run --embedded"])
def test_steps_without_serdes_are_named_before_anything_runs(invoke: Invoke, tmp_path: Path, command: str) -> None:
    script = write(tmp_path, BARE)
    why = f" (no annotation says what <lambda> ({Path(script).name}:6) returns)"
    cure = (
        "and none is set{1}; give a type or a serde as {0}_serde in the options of the step (Consumed, Produced, "
        "Grouped, Materialized), annotate the function before it, or "
    )

    result = invoke(*command.split(), script)

    assert result.exit_code == 2
    assert result.stderr == (
        "ConfigError: counts-repartition-sink, counts-repartition-source, KSTREAM-SINK-0000000007 (topic 'out') and "
        f"store 'counts' need a key serde {cure.format('key', why)}set 'default.key.serde'\n"
        "KSTREAM-SOURCE-0000000000 (topic 'in'), counts-repartition-sink and counts-repartition-source need a value "
        f"serde {cure.format('value', '')}set 'default.value.serde'\n"
    )


EMPTY = """
from pykstreams import StreamsBuilder
application_id = "shop"
builder = StreamsBuilder()
"""


@pytest.mark.parametrize("command", ["run", "run --workers 2", "run --embedded"])
def test_a_topology_that_reads_nothing_is_refused_before_anything_runs(
    invoke: Invoke, tmp_path: Path, command: str, supervised: list[tuple[int, list[str]]]
) -> None:
    brokers = [] if "--embedded" in command else ["--bootstrap-servers", "a:1"]

    result = invoke(*command.split(), write(tmp_path, EMPTY), *brokers)

    assert result.exit_code == 2
    assert "must subscribe to at least one source topic or global table; read a topic with" in result.stderr
    assert supervised == []


def test_a_topology_that_reads_nothing_is_an_error_of_check(invoke: Invoke, tmp_path: Path) -> None:
    script = write(tmp_path, EMPTY)

    described = invoke("describe", script)
    done = invoke("check", script, "--format", "json")

    assert described.exit_code == 0
    assert done.exit_code == 2
    (found,) = [one for one in json.loads(done.output) if one["severity"] == "error"]
    assert (found["check"], found["where"]) == ("topology", "shop")
    assert "must subscribe to at least one source topic or global table" in found["what"]
    assert found["cure"].startswith("read a topic with StreamsBuilder.stream, table or global_table")


EXCHANGED = """
from pykstreams import StreamsBuilder

application_id = "shop"


def longest(length: int, line: str) -> int:
    return max(length, len(line))


def build():
    builder = StreamsBuilder()
    builder.stream("lines", str, str).map_values(longest, with_key=True).to("lengths")
    return builder
"""


def test_annotations_that_contradict_what_a_function_is_called_with_are_a_warning_of_check(
    invoke: Invoke, tmp_path: Path
) -> None:
    done = invoke("check", write(tmp_path, EXCHANGED), "--format", "json")

    assert done.exit_code == 0
    (found,) = [one for one in json.loads(done.stdout) if one["check"] == "types"]
    assert (found["severity"], found["where"]) == ("warning", "KStream.map_values")
    assert found["what"].endswith(
        "is called with (key: str, value: str), and annotated to take (length: int, line: str)"
    )
    assert found["cure"].startswith("put its parameters into the order of the call, or correct their annotations")


@pytest.mark.parametrize("command", ["describe", "topics"])
def test_default_serdes_are_serdes(invoke: Invoke, tmp_path: Path, command: str) -> None:
    serdes = [f"default.{part}.serde=pykstreams.serdes:StringSerde" for part in ("key", "value")]

    result = invoke(command, write(tmp_path, BARE), "--set", serdes[0], "--set", serdes[1])

    assert (result.exit_code, result.stderr) == (0, "")


def test_help_is_there_for_each_command_without_loading_a_script(invoke: Invoke) -> None:
    for command in ("describe", "run", "topics"):
        result = invoke(command, "-h")

        assert result.exit_code == 0
        assert "PYKSTREAMS_COMMIT_INTERVAL_MS" in result.output


def test_the_exit_codes_of_the_help_are_those_of_the_enum() -> None:
    assert [int(code) for code in re.findall(r"^    (\d)  ", _EPILOG, re.MULTILINE)] == [
        code.value for code in ExitCode
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (TopologyError("x"), 2),
        (MissingSourceTopicError("x"), 2),
        (MissingSinkTopicError("x"), 2),
        (ClusterError("x"), 3),
        (DeliveryError("x", name="_MSG_TIMED_OUT"), 3),
        (DeliveryError("x", name="TOPIC_AUTHORIZATION_FAILED"), 3),
        (DeliveryError("x", name="MSG_SIZE_TOO_LARGE"), 4),
        (DeliveryError("x", name="INVALID_RECORD"), 4),
        (DeliveryError("x", name="UNKNOWN_TOPIC_OR_PART"), 2),
        (DeliveryError("x", name="_UNKNOWN_TOPIC"), 2),
        (ProcessingError("x"), 4),
        (StreamsError("x"), 4),
        (MissingInternalTopicsError("x"), 2),
        (MisconfiguredInternalTopicError("x"), 2),
        (BootstrapError("x"), 2),
        (ScriptError("x"), 2),
        (TaskAssignmentError("x"), 2),
        (ClusterUnavailableError("x"), 3),
        (LockError("x"), 5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code


def test_describe_prints_the_text_of_kafka_streams(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("describe", write(tmp_path))

    assert result.output.startswith("Topologies:\n   Sub-topology: 0\n    Source: KSTREAM-SOURCE-0000000000")


@pytest.mark.parametrize(
    ("form", "start"),
    [("mermaid", "flowchart"), ("dot", "digraph"), ("svg", "<?xml"), ("html", "<!DOCTYPE html>")],
)
def test_describe_draws(invoke: Invoke, tmp_path: Path, form: str, start: str) -> None:
    assert invoke("describe", write(tmp_path), "--format", form).output.startswith(start)


def test_describe_gives_json(invoke: Invoke, tmp_path: Path) -> None:
    described = json.loads(invoke("describe", write(tmp_path), "--format", "json").output)

    assert [part["id"] for part in described["subtopologies"]] == [0, 1]


def test_describe_needs_no_application_id(invoke: Invoke, tmp_path: Path) -> None:
    script = write(tmp_path, COUNT.replace('application_id = "shop"', ""))

    assert invoke("describe", script).exit_code == 0


def test_settings_reach_the_function_that_builds(invoke: Invoke, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        f"{TEXT}"
        "def build(config):\n"
        "    builder = StreamsBuilder()\n"
        "    builder.stream(config['app.source']).to('out')\n"
        "    return builder\n",
    )

    assert "topics: [a]" in invoke("describe", script, env={"PYKSTREAMS_APP_SOURCE": "a"}).output
    assert (
        "topics: [b]" in invoke("describe", script, "--set", "app.source=b", env={"PYKSTREAMS_APP_SOURCE": "a"}).output
    )


def test_topics_lists_what_the_application_owns(invoke: Invoke, tmp_path: Path) -> None:
    planned = json.loads(invoke("topics", write(tmp_path), "--format", "json").output)

    assert [(topic["name"], topic["kind"], topic["subtopology"], topic["follows"]) for topic in planned] == [
        ("shop-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition", "repartition", 1, ["in"]),
        (
            "shop-KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog",
            "changelog",
            1,
            ["shop-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition"],
        ),
    ]
    assert planned[0]["config"]["cleanup.policy"] == "delete"
    assert planned[1]["config"]["cleanup.policy"] == "compact"


def test_topic_settings_of_the_user_are_part_of_the_plan(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("topics", write(tmp_path), "--format", "json", "--set", "topic.min.insync.replicas=2")
    planned = json.loads(result.output)

    assert [topic["config"].get("min.insync.replicas") for topic in planned] == ["2", "2"]


def test_topics_prints_names_unbroken_however_narrow_the_terminal(invoke: Invoke, tmp_path: Path) -> None:
    lines = invoke("topics", write(tmp_path), "--application-id", "x", env={"COLUMNS": "20"}).output.splitlines()

    assert lines[0].split() == ["topic", "kind", "sub-topology", "partitions"]
    assert re.fullmatch(r"x-\S+-repartition +repartition +1 +as in", lines[1])
    assert lines[2] == "  cleanup.policy=delete"
    assert [line for line in lines if re.fullmatch(r"x-\S+-changelog +changelog +1 +as x-\S+-repartition", line)]


def test_a_topic_that_follows_several_names_them(invoke: Invoke, tmp_path: Path) -> None:
    script = write(tmp_path, COUNT.replace('"in"', '["in", "too"]'))
    planned = json.loads(invoke("topics", script, "--format", "json").output)

    assert planned[0]["follows"] == ["in", "too"]
    assert "most of in, too" in invoke("topics", script, env={"COLUMNS": "200"}).output


@pytest.mark.parametrize(("optimization", "owned"), [("none", ["x-store-changelog"]), ("all", [])])
def test_a_source_topic_that_serves_as_changelog_is_not_the_applications_own(
    invoke: Invoke, tmp_path: Path, optimization: str, owned: list[str]
) -> None:
    script = write(
        tmp_path,
        f"{TEXT}builder = StreamsBuilder()\nbuilder.table('in', materialized='store').to_stream().to('out')\n",
    )
    settings = ("--application-id", "x", "--set", f"topology.optimization={optimization}")

    planned = json.loads(invoke("topics", script, "--format", "json", *settings).output)

    assert [topic["name"] for topic in planned] == owned


@pytest.mark.parametrize("command", ["topics", "run"])
def test_an_application_without_name_is_a_usage_error(invoke: Invoke, tmp_path: Path, command: str) -> None:
    result = invoke(command, write(tmp_path, COUNT.replace('application_id = "shop"', "")))

    assert result.exit_code == 2
    assert (
        'the application has no name; give --application-id ID, or write application_id = "ID" into the script (a name '
        "must not change: offsets and state belong to it)"
    ) in " ".join(result.stderr.split())


def test_run_without_brokers_is_a_usage_error(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("run", write(tmp_path))

    assert result.exit_code == 2
    assert "no brokers are named; give --bootstrap-servers HOST:PORT, or --embedded" in result.stderr


@pytest.mark.parametrize("command", ["describe", "topics", "run --bootstrap-servers a:1"])
def test_a_foreign_variable_is_warned_of_and_nothing_else(
    invoke: Invoke, tmp_path: Path, worker: type[Worker], caplog: pytest.LogCaptureFixture, command: str
) -> None:
    foreign = {"PYKSTREAMS_SHOP_SERVICE_HOST": "10.0.0.1"}
    said = "environment variable PYKSTREAMS_SHOP_SERVICE_HOST names no setting and is ignored"

    with caplog.at_level(logging.WARNING):
        result = invoke(*command.split(), write(tmp_path), env=foreign)

    assert (result.exit_code, caplog.messages) == (0, [said])


def test_a_foreign_variable_is_not_warned_of_by_each_worker(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_module, "_work", lambda *arguments: None)
    foreign = {"PYKSTREAMS_SHOP_SERVICE_HOST": "10.0.0.1"}

    with caplog.at_level(logging.WARNING):
        result = invoke("run", write(tmp_path), "--bootstrap-servers", "a:1", "--worker", "2", env=foreign)

    assert (result.exit_code, caplog.messages) == (0, [])


def test_a_request_to_stop_while_the_cluster_is_looked_at_starts_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {caught: signal.getsignal(caught) for caught in (signal.SIGINT, signal.SIGTERM)}

    def look(stopped: Callable[[], bool]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped()

    try:
        assert run_module._supervise(2, ["missing.py"], look) == 0
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "ScriptError: there is no script 'missing.py'"),
        (["shop_job.py:nothing"], "ScriptError: shop_job.py has no attribute 'nothing'"),
        (
            ["shop_job.py", "--set", "pol.ms=1"],
            "ConfigError: unknown setting 'pol.ms'; did you mean 'poll.ms'? (settings of your own go under 'app.') "
            "[--set]",
        ),
        (["shop_job.py", "--set", "poll.ms"], "ConfigError: --set 'poll.ms' is not of the form key=value"),
    ],
)
def test_errors_of_script_and_settings_end_with_2(
    invoke: Invoke, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write(tmp_path)

    for command in (["describe"], ["topics"], ["run", "--bootstrap-servers", "a:1"]):
        result = invoke(*command, *arguments)

        assert result.exit_code == 2
        assert result.stderr.startswith(message)


def test_two_nodes_of_one_name_end_with_2(invoke: Invoke, tmp_path: Path) -> None:
    script = write(tmp_path, COUNT.replace(".to_stream()", '.to_stream(name="out").filter(bool, name="out")'))

    for command in ("describe", "topics", "run --bootstrap-servers a:1"):
        result = invoke(*command.split(), script)

        assert result.exit_code == 2
        assert result.stderr == (
            "TopologyError: Invalid topology: a node named 'out' has already been added; give one of the two another "
            "name\n"
        )


def test_a_script_that_defines_no_topology_says_so(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("run", write(tmp_path, "application_id = 'x'\n"), "--bootstrap-servers", "a:1")

    assert result.exit_code == 2
    assert result.stderr == (
        "ScriptError: shop_job.py defines no topology; define a function build() that returns a Topology or a "
        "StreamsBuilder, or name one as shop_job.py:ATTRIBUTE\n"
    )


def test_run_runs_one_worker_in_this_process(invoke: Invoke, tmp_path: Path, worker: type[Worker]) -> None:
    result = invoke(
        "run", write(tmp_path), "--bootstrap-servers", "a:1,b:1", "--state-dir", "state", "--set", "poll.ms=7"
    )

    assert result.exit_code == 0
    [(topology, config)] = worker.made
    assert isinstance(topology, Topology)
    assert (config.application_id, config.bootstrap_servers) == ("shop", ("a:1", "b:1"))
    assert (str(config.state_dir), config.poll_ms, config.num_stream_threads) == ("state", 7, 1)


def test_run_starts_from_a_bootstrap(
    invoke: Invoke, tmp_path: Path, worker: type[Worker], supervised: list[tuple[int, list[str]]]
) -> None:
    brokers = ("--bootstrap-servers", "a:1")
    invoke("run", write(tmp_path), *brokers)
    invoke("run", write(tmp_path), *brokers, "--bootstrap", "made", "--reset-offsets")
    invoke("run", write(tmp_path), *brokers, "--bootstrap", "made", "--reset-offsets", "--workers", "2")

    assert worker.bootstraps == [(None, False), ("made", True)]
    assert supervised[0][1][-5:] == ["--bootstrap", "made", "--reset-offsets", *brokers]


def test_run_loads_a_bootstrap_while_it_runs(
    invoke: Invoke, tmp_path: Path, worker: type[Worker], supervised: list[tuple[int, list[str]]]
) -> None:
    arguments = ("--bootstrap-servers", "a:1", "--load-bootstrap", "made")
    invoke("run", write(tmp_path), *arguments)
    invoke("run", write(tmp_path), *arguments, "--workers", "2")

    assert (worker.bootstraps, worker.loaded) == ([(None, False)], ["made"])
    assert supervised[0][1][-4:] == ["--load-bootstrap", "made", "--bootstrap-servers", "a:1"]


def test_offsets_are_not_reset_to_no_bootstrap(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("run", write(tmp_path), "--bootstrap-servers", "a:1", "--reset-offsets")

    assert result.exit_code == 2
    assert "--reset-offsets gives up offsets for those of a bootstrap; name one: --bootstrap DIR" in result.stderr


def test_options_win_over_set_the_environment_the_file_and_the_script(
    invoke: Invoke, tmp_path: Path, worker: type[Worker]
) -> None:
    (tmp_path / "a.properties").write_text("application.id=file\nclient.id=file\npoll.ms=1\n")

    invoke(
        "run",
        write(tmp_path),
        *("--bootstrap-servers", "a:1", "--application-id", "option", "--config", "a.properties"),
        *("--set", "application.id=pair", "--set", "client.id=pair"),
        env={"PYKSTREAMS_CLIENT_ID": "environment", "PYKSTREAMS_POLL_MS": "2"},
    )

    [(_, config)] = worker.made
    assert (config.application_id, config.client_id, config.poll_ms) == ("option", "pair", 2)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ClusterError("no broker answered"), 3, "ClusterError: no broker answered\n"),
        (ProcessingError("record failed"), 4, "ProcessingError: record failed\n"),
        (SerdeError("bad bytes"), 4, "SerdeError: bad bytes\n"),
        (LockError("locked"), 5, "LockError: locked\n"),
    ],
    ids=lambda value: str(value),
)
def test_the_error_that_ended_a_worker_decides_the_exit_code(
    invoke: Invoke, tmp_path: Path, worker: type[Worker], error: Exception, code: int, message: str
) -> None:
    worker.error = error

    result = invoke("run", write(tmp_path), "--bootstrap-servers", "a:1")

    assert (result.exit_code, result.stderr) == (code, message)


def test_the_causes_of_an_error_are_shown(invoke: Invoke, tmp_path: Path, worker: type[Worker]) -> None:
    worker.error = ProcessingError("record failed")
    worker.error.__cause__ = ValueError("no number")

    result = invoke("run", write(tmp_path), "--bootstrap-servers", "a:1")

    assert result.stderr == "ProcessingError: record failed\n  caused by ValueError: no number\n"


def test_a_cause_that_the_error_has_told_already_is_not_repeated(
    invoke: Invoke, tmp_path: Path, worker: type[Worker]
) -> None:
    told, inner = SerdeError("expected 8 bytes"), struct.error("unpack requires a buffer of 8 bytes")
    told.__cause__ = inner
    worker.error = StreamsError("KSTREAM-SOURCE-0000000000 cannot read nums-0: expected 8 bytes; give the right serde")
    worker.error.__cause__ = told

    result = invoke("run", write(tmp_path), "--bootstrap-servers", "a:1")

    assert result.stderr == (
        "StreamsError: KSTREAM-SOURCE-0000000000 cannot read nums-0: expected 8 bytes; give the right serde\n"
        "  caused by struct.error: unpack requires a buffer of 8 bytes\n"
    )


def test_a_setting_that_a_task_misses_is_an_error_of_settings(
    invoke: Invoke, tmp_path: Path, worker: type[Worker]
) -> None:
    worker.error = StreamsError("KSTREAM-SINK-0000000001: a step needs a value serde and none is set")
    worker.error.__cause__ = ConfigError("a step needs a value serde and none is set")

    result = invoke("run", write(tmp_path), "--bootstrap-servers", "a:1")

    assert result.exit_code == 2


def test_several_workers_are_supervised(
    invoke: Invoke, tmp_path: Path, supervised: list[tuple[int, list[str]]]
) -> None:
    (tmp_path / "a.toml").write_text("poll.ms = 5\n")

    result = invoke(
        "run",
        write(tmp_path),
        *("--bootstrap-servers", "a:1", "--workers", "3", "--state-dir", "state"),
        *("--config", "a.toml", "--set", "client.id=till", "--set", "app.x=y", "--log-level", "debug"),
        *("--log-format", "json", "--log-level-libraries", "info"),
    )

    assert result.exit_code == 4
    assert supervised == [
        (
            3,
            [
                *("shop_job.py", "--workers", "1", "--log-level", "debug", "--log-format", "json"),
                *("--log-level-libraries", "info", "--config", "a.toml"),
                *("--set", "client.id=till", "--set", "app.x=y", "--application-id", "shop"),
                *("--bootstrap-servers", "a:1", "--state-dir", "state"),
            ],
        )
    ]


def test_the_number_of_workers_defaults_to_the_number_of_stream_threads(
    invoke: Invoke, tmp_path: Path, supervised: list[tuple[int, list[str]]]
) -> None:
    invoke("run", write(tmp_path), "--bootstrap-servers", "a:1", "--set", "num.stream.threads=2")

    assert [count for count, _ in supervised] == [2]


def test_a_script_is_checked_before_workers_start(
    invoke: Invoke, tmp_path: Path, supervised: list[tuple[int, list[str]]]
) -> None:
    result = invoke("run", write(tmp_path, "1 / 0\n"), "--workers", "2", "--bootstrap-servers", "a:1")

    assert result.exit_code == 2
    assert supervised == []


def test_a_worker_has_names_of_its_own() -> None:
    config = StreamsConfig(client_id="till", consumer_group_instance_id="one", num_stream_threads=3, poll_ms=1)

    assert dict(run_module.for_worker(config, 2).originals) == {
        "client.id": "till-2",
        "consumer.group.instance.id": "one-2",
        "num.stream.threads": 1,
        "poll.ms": 1,
    }
    assert run_module.for_worker(config, None).client_id == "till"


def test_an_embedded_cluster_lives_in_the_supervisor_with_a_fresh_state_directory(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def supervise(count: int, arguments: list[str], look: object) -> int:
        assert look is None
        folder = arguments[arguments.index("--state-dir") + 1]
        assert Path(folder).is_dir()
        assert list(Path(folder).iterdir()) == []
        seen.extend((arguments[arguments.index("--bootstrap-servers") + 1], folder))
        return 0

    monkeypatch.setattr(run_module, "_supervise", supervise)

    result = invoke("run", write(tmp_path), "--embedded")

    assert result.exit_code == 0
    assert re.fullmatch(r"127\.0\.0\.1:\d+", seen[0])
    assert not Path(seen[1]).exists()


@pytest.mark.parametrize("option", ["--bootstrap-servers", "--state-dir"])
def test_an_embedded_cluster_takes_no_brokers_and_no_state_directory(
    invoke: Invoke, tmp_path: Path, option: str
) -> None:
    result = invoke("run", write(tmp_path), "--embedded", option, "x:1")

    assert result.exit_code == 2
    assert (
        "--embedded brings its own brokers and a fresh state directory; leave out --bootstrap-servers and --state-dir"
    ) in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "command", ["check", "lag", "status", "reset --dry-run", "topics --create"], ids=lambda given: given.split()[0]
)
def test_an_embedded_cluster_is_no_cluster_for_tools(
    invoke: Invoke, tmp_path: Path, embedded_cluster: EmbeddedCluster, command: str
) -> None:
    script = write(tmp_path)

    name, *options = command.split()
    result = invoke(name, script, "--bootstrap-servers", embedded_cluster.bootstrap_servers, *options)

    assert (result.exit_code, result.stdout) == (3, "")
    assert f"the cluster at {embedded_cluster.bootstrap_servers} is an embedded one" in result.stderr


def test_an_embedded_cluster_refuses_exactly_once(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("run", write(tmp_path), "--embedded", "--set", "processing.guarantee=exactly_once_v2")

    assert result.exit_code == 2
    assert result.stderr == (
        "ConfigError: processing.guarantee is 'exactly_once_v2', and an embedded cluster has no transactions; use "
        "at_least_once with --embedded, or a real cluster\n"
    )


def test_an_embedded_cluster_refuses_partition_counts_other_than_four() -> None:
    config = StreamsConfig(application_id="shop")

    def topology(partitions: int) -> Topology:
        from pykstreams import Repartitioned

        builder = StreamsBuilder()
        builder.stream("in").repartition(Repartitioned(name="by-key", num_partitions=partitions)).to("out")
        return builder.build()

    run_module.check_embedded(config, topology(4))
    with pytest.raises(ConfigError) as caught:
        run_module.check_embedded(config, topology(6))

    assert str(caught.value) == (
        "repartition topic 'shop-by-key-repartition' wants 6 partitions, and every topic of an embedded cluster has 4; "
        "leave the number out, or use a real cluster"
    )


REFUSED = f"""{TEXT}
application_id = "shop"
def build():
    builder = StreamsBuilder()
    builder.stream("a b").merge(builder.stream("..")).to("{"x" * 250}")
    builder.stream("orders").to("bills")
    return builder
"""


def test_topics_with_names_that_kafka_refuses_are_errors_of_check(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(REFUSED)

    described = invoke("describe", "shop.py")
    done = invoke("check", "shop.py", "--format", "json")

    assert described.exit_code == 0
    found = {(one["where"], one["what"]) for one in json.loads(done.output)}
    assert done.exit_code == 2
    assert found == {
        (
            "a b",
            "which KSTREAM-SOURCE-0000000000 reads, has characters other than ASCII letters, digits, '.', '_' and '-'",
        ),
        ("..", "which KSTREAM-SOURCE-0000000001 reads, has a name that folders have"),
        ("x" * 250, "which KSTREAM-SINK-0000000003 writes, has 250 characters; at most 249 are allowed"),
    }


@pytest.mark.parametrize("mode", [[], ["--create"], ["--acls"]])
def test_topics_with_names_that_kafka_refuses_are_neither_listed_nor_created(
    invoke: Invoke, tmp_path: Path, mode: list[str]
) -> None:
    (tmp_path / "shop.py").write_text(REFUSED)

    done = invoke("topics", "shop.py", "--bootstrap-servers", "localhost:1", *mode)

    assert (done.exit_code, done.stdout) == (2, "")
    assert "topic 'a b', which KSTREAM-SOURCE-0000000000 reads, has characters" in done.stderr
    assert "correct the name in the topology or the settings" in done.stderr


@pytest.mark.parametrize("command", ["check", "run"])
def test_class_that_cannot_be_imported_is_told_with_its_source_before_anything_else(
    invoke: Invoke, tmp_path: Path, command: str
) -> None:
    (tmp_path / "shop.py").write_text(COUNT)
    (tmp_path / "shop.toml").write_text('"processing.exception.handler" = "nomod:Nope"')

    done = invoke(command, "shop.py", "--config", "shop.toml", "--bootstrap-servers", "localhost:1")

    assert (done.exit_code, done.stderr) == (
        2,
        "ConfigError: setting 'processing.exception.handler' is 'nomod:Nope', which cannot be imported: No module "
        "named 'nomod'; correct it, or install the module where the application runs [shop.toml]\n",
    )


def test_description_that_is_no_text_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_bytes(b'{"shape": "\xff"}')
    result = invoke("diff", str(tmp_path / "old.json"), "count.py")

    assert result.exit_code == 2
    assert "old.json' cannot be read" in result.stderr


def counted(name: str, *stores: str) -> str:
    steps = "".join(f'    grouped.count(materialized="{store}")\n' for store in stores)
    return (
        f"from pykstreams import StreamsBuilder\n\napplication_id = {name!r}\n\n\n"
        "def build():\n    builder = StreamsBuilder()\n"
        f'    grouped = builder.stream("in", str, str).group_by_key()\n{steps}    return builder.build()\n'
    )


def test_new_store_that_may_begin_empty_is_safe_when_it_is_accepted(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(counted("shop", "counts", "gone"), encoding="utf-8")
    (tmp_path / "new.py").write_text(counted("shop", "counts", "visits", "more"), encoding="utf-8")
    old, new = str(tmp_path / "old.py"), str(tmp_path / "new.py")

    refused = invoke("diff", old, new)
    one_only = invoke("diff", old, new, "--accept", "visits", "--accept", "gone")
    accepted = invoke("diff", old, new, "--accept", "visits", "--accept", "more", "--accept", "gone")

    assert (refused.exit_code, one_only.exit_code, accepted.exit_code) == (2, 2, 0)
    assert "(diff --accept visits)" in refused.stdout
    assert one_only.stdout.splitlines()[0].startswith("empty: more: the store is new and begins empty")
    assert accepted.stdout.splitlines()[-1] == "verdict: safe"
    assert accepted.stdout.count("this was accepted") == 3


def test_bootstrap_to_begin_with_and_to_go_over_to_is_not_the_same(invoke: Invoke, tmp_path: Path) -> None:
    both = ("--bootstrap", "made", "--load-bootstrap", "made")
    done = invoke("run", write(tmp_path), "--bootstrap-servers", "a:1", *both)

    assert done.exit_code == 2
    assert "--bootstrap and --load-bootstrap contradict each other" in done.stderr
