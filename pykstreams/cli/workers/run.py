"""``pykstreams run``: one worker in this process, or a supervisor of several, with Kafka or an embedded cluster."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykstreams.cli.options import (
    SETTINGS_HELP,
    built_topology,
    combined_config,
    need_application_id,
    settings_options,
    topology_argument,
)
from pykstreams.cli.workers.serving import Serving
from pykstreams.cli.workers.worker_process import stop_with_supervisor
from pykstreams.core.errors import ConfigError
from pykstreams.core.shown_values import with_noun

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.dsl.script import Script
    from pykstreams.topology.topology import Topology

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bootstraps:
    """The bootstraps that an application begins with, or goes over to.

    :param start: the folder of the one whose offsets the group starts at.
    :param reset_offsets: whether offsets that the group has are given up for them.
    :param load: the folder of the one whose state takes the place of that of an application that goes on.
    """

    start: str | None
    reset_offsets: bool
    load: str | None

    def check(self) -> None:
        """Raises ``UsageError`` where the options contradict each other."""
        if self.reset_offsets and self.start is None:
            raise click.UsageError(
                "--reset-offsets gives up offsets for those of a bootstrap; name one: --bootstrap DIR"
            )
        if self.start is not None and self.start == self.load:
            raise click.UsageError(
                "--bootstrap and --load-bootstrap contradict each other: an application that begins with a bootstrap "
                "has its state already; give --bootstrap to begin with it, --load-bootstrap to go on and go over to it"
            )

    def arguments(self) -> list[str]:
        """The same as options of a worker process."""
        arguments = [] if self.start is None else ["--bootstrap", self.start]
        if self.reset_offsets:
            arguments.append("--reset-offsets")
        if self.load is not None:
            arguments += ["--load-bootstrap", self.load]
        return arguments


@click.command(epilog=SETTINGS_HELP)
@topology_argument
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers to ask first (bootstrap.servers).")
@settings_options
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes share the work. Default: num.stream.threads, which is 1.",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder for local state (state.dir); all workers share it.",
)
@click.option(
    "--embedded",
    is_flag=True,
    help="Run on brokers inside of this process, for a first look without Kafka: topics appear on first use with 4 "
    "partitions, nothing outlives the process, and exactly-once is not available.",
)
@click.option(
    "--bootstrap",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder of a bootstrap (see 'pykstreams bootstrap'): the group starts at its offsets, and tasks without local "
    "state take over its files. Say it again at each start: once the group has started from it, it goes on.",
)
@click.option(
    "--reset-offsets",
    is_flag=True,
    help="Give up the offsets that the group has for those of the bootstrap; all workers must be stopped. Once it has "
    "started from that bootstrap, this does nothing.",
)
@click.option(
    "--load-bootstrap",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder of a bootstrap whose state takes the place of that of an application that goes on: each task is "
    "swapped at a commit. For a rolling restart of all workers.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="What pykstreams and your code write to standard error.",
)
@click.option(
    "--log-level-libraries",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    help="The same for other libraries. Default: warning, or --log-level where that is higher.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How a line looks; json: one object a line, with a traceback in its field 'exception'.",
)
@click.option(
    "--http",
    "http_address",
    metavar="[HOST:]PORT",
    help="Answer health and queries of stores over HTTP, needs the extra http. Without a host only this machine is "
    "answered; 0.0.0.0:8080 answers everybody. Each further worker has the next port.",
)
@click.option(
    "--http-token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A file with the token that clients must send; the same one for all instances.",
)
@click.option("--http-tls-cert", metavar="FILE", type=click.Path(dir_okay=False), help="Certificate chain, for HTTPS.")
@click.option("--http-tls-key", metavar="FILE", type=click.Path(dir_okay=False), help="The key of the certificate.")
@click.option(
    "--http-tls-ca",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="What the certificates of other instances are checked with. Default: the authorities of the system.",
)
@click.option(
    "--http-stale",
    metavar="refuse|allow|MS",
    default="refuse",
    show_default=True,
    help="How old answers of standby tasks may be when the owner of a partition is away.",
)
@click.option(
    "--reload",
    is_flag=True,
    help="While developing: stop in order and start anew whenever the script, or a module of yours that it has "
    "imported, changes. After an error in the script the next change is waited for.",
)
@click.option("--reloaded", type=click.Path(path_type=Path), hidden=True)
@click.option("--worker", type=int, hidden=True)
def run(
    topology: str,
    bootstrap_servers: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    workers: int | None,
    state_dir: str | None,
    embedded: bool,
    bootstrap: str | None,
    reset_offsets: bool,
    load_bootstrap: str | None,
    log_level: str,
    http_address: str | None,
    http_token_file: str | None,
    http_tls_cert: str | None,
    http_tls_key: str | None,
    http_tls_ca: str | None,
    http_stale: str,
    log_level_libraries: str | None,
    log_format: str,
    reload: bool,
    reloaded: Path | None,
    worker: int | None,
) -> None:
    """Run a topology until it is stopped by Ctrl-C or SIGTERM.

    A worker commits, closes its state and leaves the group when it is stopped, and goes on where it was when it is
    started again. Start the same command on other machines to share the work with them. With several workers a
    crashed one is started again.

    \b
        pykstreams run word_count.py --bootstrap-servers localhost:9092
        pykstreams run shop.topology:build --config shop.toml --workers 4
        pykstreams run word_count.py --embedded --set commit.interval.ms=1000
        pykstreams run word_count.py --embedded --reload
        pykstreams run word_count.py --http :8080
        pykstreams run shop.topology:build --bootstrap /data/shop-2026-11-21
        pykstreams run shop.topology:build --load-bootstrap /data/shop-2026-12-01
    """
    from pykstreams.cli.logs import configure_logging
    from pykstreams.cli.reloading.processes import run_reloading
    from pykstreams.cli.reloading.watched_files import told_to
    from pykstreams.dsl.script import load_script
    from pykstreams.topology.checks.missing_sources import check_sources

    bootstraps = Bootstraps(bootstrap, reset_offsets, load_bootstrap)
    _check_place(embedded, bootstrap_servers, state_dir)
    serving = Serving(http_address, http_token_file, http_tls_cert, http_tls_key, http_tls_ca, http_stale)
    bootstraps.check()
    serving.check()
    configure_logging(log_level, worker, topology, libraries=log_level_libraries, form=log_format)
    arguments = [*_log_arguments(log_level, log_level_libraries, log_format), *settings_arguments(config_file, pairs)]
    if reload:
        arguments += [] if application_id is None else ["--application-id", application_id]
        arguments += [] if workers is None else ["--workers", str(workers)]
        arguments += [*bootstraps.arguments(), *serving.arguments()]
        with _place(embedded, bootstrap_servers, state_dir) as options:
            code = run_reloading(topology, [*arguments, *options])
        click.get_current_context().exit(code)
    if reloaded is not None:
        stop_with_supervisor(sys.stdin.fileno())
    settings = {
        "application.id": application_id,
        "bootstrap.servers": "127.0.0.1:1" if embedded else bootstrap_servers,
        "state.dir": state_dir,
    }
    with told_to(reloaded, topology):
        script = load_script(topology)
        # a supervisor has warned of settings before its workers
        config = _complete_config(script, config_file, pairs, settings, warns=worker is None)
        count = workers or config.num_stream_threads
        config = for_worker(config, worker)
        built = built_topology(script, config)
        check_sources(built.plan(config))
    if embedded:
        check_embedded(config, built)
    if worker is not None or (count == 1 and not embedded):
        _work(built, config, bootstraps, serving, worker)
        return
    arguments = [topology, "--workers", "1", *arguments]
    arguments += ["--application-id", config.application_id, *bootstraps.arguments(), *serving.arguments()]
    with _place(embedded, bootstrap_servers, state_dir) as options:
        code = _supervise(count, [*arguments, *options], None if embedded else partial(_look, built, config))
    click.get_current_context().exit(code)


def _check_place(embedded: bool, bootstrap_servers: str | None, state_dir: str | None) -> None:
    if embedded and (bootstrap_servers or state_dir):
        raise click.UsageError(
            "--embedded brings its own brokers and a fresh state directory; leave out --bootstrap-servers and "
            "--state-dir"
        )


def _log_arguments(level: str, libraries: str | None, form: str) -> list[str]:
    arguments = ["--log-level", level, "--log-format", form]
    return arguments if libraries is None else [*arguments, "--log-level-libraries", libraries]


def _complete_config(
    script: Script, config_file: Path | None, pairs: tuple[str, ...], options: Mapping[str, str | None], *, warns: bool
) -> StreamsConfig:
    """Puts the settings together, and raises ``UsageError`` where one is missing without which nothing can run."""
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options, warns=warns, resolves=True)
    need_application_id(config)
    if "bootstrap.servers" not in config:
        raise click.UsageError(
            "no brokers are named; give --bootstrap-servers HOST:PORT, or --embedded for a first look without Kafka"
        )
    return config


def for_worker(config: StreamsConfig, worker: int | None) -> StreamsConfig:
    """The configuration of one process: a single thread, and names that no other worker of the supervisor has."""
    changes: dict[str, object] = {"num.stream.threads": 1}
    if worker is not None:
        for name, value in config.originals.items():
            if value and (name == "client.id" or name.endswith("group.instance.id")):
                changes[name] = f"{value}-{worker}"
    return config.replace(changes)


def check_embedded(config: StreamsConfig, topology: Topology) -> None:
    """Raises ``ConfigError`` for what an embedded cluster cannot do."""
    from pykstreams.runtime.clients.mock_cluster import PARTITIONS

    if config.exactly_once:
        raise ConfigError(
            "processing.guarantee is 'exactly_once_v2', and an embedded cluster has no transactions; use at_least_once "
            "with --embedded, or a real cluster"
        )
    for topic in topology.plan(config).internal_topics:
        if topic.partitions not in (None, PARTITIONS):
            raise ConfigError(
                f"{topic.kind} topic {topic.name!r} wants {with_noun(topic.partitions, 'partition')}, and every "
                f"topic of an embedded cluster has {PARTITIONS}; leave the number out, or use a real cluster"
            )


def settings_arguments(config_file: Path | None, pairs: tuple[str, ...]) -> list[str]:
    """The options by which a worker process gets the settings of its supervisor."""
    arguments = [] if config_file is None else ["--config", str(config_file)]
    for pair in pairs:
        arguments += ["--set", pair]
    return arguments


def _work(
    topology: Topology, config: StreamsConfig, bootstraps: Bootstraps, serving: Serving, worker: int | None
) -> None:
    from pykstreams.runtime.streams import KafkaStreams

    if worker is not None:
        stop_with_supervisor(sys.stdin.fileno())
    _compare(topology, config)
    with ExitStack() as stack:
        listening = stack.enter_context(serving.bound(worker))
        if listening is not None:
            config = listening.told(config)
        streams = KafkaStreams(topology, config, bootstrap=bootstraps.start, reset_offsets=bootstraps.reset_offsets)
        if bootstraps.load is not None:
            streams.load_bootstrap(bootstraps.load)
        if listening is not None:
            stack.enter_context(listening.serve(streams, config))
        streams.run()


def _compare(topology: Topology, config: StreamsConfig) -> None:
    """Warns where the topology is not the one that ran last on this state."""
    from pykstreams.runtime.checks.kept_topology import KeptTopology
    from pykstreams.topology.changes.shape import shape_of

    KeptTopology(config).compared(shape_of(topology.plan(config), config))


@contextmanager
def _place(embedded: bool, bootstrap_servers: str | None, state_dir: str | None) -> Iterator[list[str]]:
    """Yields the options with the places of brokers and state for workers; an embedded cluster lives inside."""
    if embedded:
        from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster

        with EmbeddedCluster() as cluster, tempfile.TemporaryDirectory(prefix="pykstreams-") as folder:
            log.info("the embedded cluster is at %s until this process ends", cluster.bootstrap_servers)
            yield ["--bootstrap-servers", cluster.bootstrap_servers, "--state-dir", folder]
        return
    options: list[str] = []
    if bootstrap_servers is not None:
        options += ["--bootstrap-servers", bootstrap_servers]
    if state_dir is not None:
        options += ["--state-dir", state_dir]
    yield options


def _look(topology: Topology, config: StreamsConfig, stopped: Callable[[], bool]) -> None:
    """Finds what is wrong with the cluster before there are workers, each of which would say the same."""
    from pykstreams.core.clock import SystemClock
    from pykstreams.runtime.topics.start_check import look_before_start

    look_before_start(topology.plan(config), config, SystemClock(), stopped)


def _supervise(count: int, arguments: list[str], look: Callable[[Callable[[], bool]], None] | None) -> int:
    from pykstreams.cli.exit_codes import ExitCode
    from pykstreams.cli.workers.supervisor import Supervisor
    from pykstreams.cli.workers.worker_process import WorkerProcesses
    from pykstreams.core.clock import SystemClock

    processes = WorkerProcesses(arguments)
    processes.catch_signals()
    if look is not None:
        look(lambda: processes.stop_requested)
    if processes.stop_requested:
        return ExitCode.STOPPED
    supervisor = Supervisor(count, launch=processes.launch, next_event=processes.next_event, clock=SystemClock())
    return supervisor.run()
