"""``pykstreams topics``: the topics an application owns, so that an administrator can create them beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykstreams.cli.options import (
    SETTINGS_HELP,
    built_topology,
    combined_config,
    given_options,
    need_application_id,
    settings_options,
    topology_argument,
)
from pykstreams.core.shown_values import with_noun

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.topology.plan import InternalTopic, SubtopologyPlan, TopologyPlan


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """One topic of the plan.

    :param partitions: how many, ``None`` when they follow from other topics.
    :param follows: those topics; the largest of them decides.
    """

    name: str
    kind: str
    subtopology: int
    partitions: int | None
    follows: tuple[str, ...]
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions_text(self) -> str:
        if self.partitions is not None:
            return str(self.partitions)
        several = len(self.follows) > 1
        return f"most of {', '.join(self.follows)}" if several else f"as {self.follows[0]}"


@click.command(epilog=SETTINGS_HELP)
@topology_argument
@settings_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="table: to read. json: for programs.",
)
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers, for --create and --acls.")
@click.option(
    "--create",
    is_flag=True,
    help="Create every topic that is missing: those of sources, sinks and dead letters, and the application's own.",
)
@click.option(
    "--partitions",
    metavar="N",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Of each topic of sources, sinks and dead letters that --create makes.",
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=-1),
    metavar="N",
    help="For --create; default: replication.factor, whose -1 leaves it to the brokers.",
)
@click.option("--acls", is_flag=True, help="Print the commands by which an administrator allows what is needed.")
@click.option("--principal", default="User:APPLICATION", show_default=True, help="Whom --acls allows it, as KIND:NAME.")
def topics(
    topology: str,
    config_file: Path | None,
    pairs: tuple[str, ...],
    application_id: str | None,
    form: str,
    bootstrap_servers: str | None,
    create: bool,
    partitions: int,
    replication_factor: int | None,
    acls: bool,
    principal: str,
) -> None:
    """Show the topics that the application creates. Needs no Kafka.

    Repartition topics carry records between sub-topologies, and changelogs keep stores. A worker creates what is
    missing when it starts; where it may not, create the topics beforehand.

    \b
        pykstreams topics word_count.py
        pykstreams topics shop.topology:build --application-id shop --format json
        pykstreams topics word_count.py --create --bootstrap-servers localhost:9092
    """
    _check_options(create, acls, principal)
    from pykstreams.dsl.script import load_script
    from pykstreams.runtime.topics.user_topics import check_topic_names

    script = load_script(topology)
    options = {
        "application.id": application_id,
        "bootstrap.servers": bootstrap_servers,
        "replication.factor": None if replication_factor is None else str(replication_factor),
    }
    config = combined_config(script, config_file=config_file, pairs=pairs, options=options)
    need_application_id(config)
    if (create or acls) and "bootstrap.servers" not in config:
        raise click.UsageError("no brokers are named; give --bootstrap-servers HOST:PORT")
    plan = built_topology(script, config).plan(config)
    check_topic_names(plan, config.errors_dead_letter_queue_topic_name)
    if create:
        made = list(_created(plan, config, partitions))
        for name, count in made:
            click.echo(f"created {name} with {with_noun(count, 'partition')}")
        if not made:
            click.echo("no topic is missing, so none was created")
        return
    if acls:
        from pykstreams.runtime.checks.rights import acl_lines

        for line in acl_lines(plan, config, ",".join(config.bootstrap_servers), principal):
            click.echo(line)
        return
    planned = list(planned_topics(plan, config.topic_settings))
    if form == "json":
        import json

        click.echo(json.dumps([asdict(topic) for topic in planned], indent=2))
    else:
        _print_table(planned)


def _check_options(create: bool, acls: bool, principal: str) -> None:
    """Raises a usage error for options that contradict each other, or that nothing would heed."""
    if create and acls:
        raise click.UsageError("--create and --acls contradict each other; give one of them")
    if (create or acls) and (given := given_options(["form"])):
        raise click.UsageError(f"{given} for the list of topics; leave it out")
    if not create and (given := given_options(["partitions", "replication_factor"])):
        raise click.UsageError(f"{given} for --create; give that, too, or leave it out")
    if not acls and (given := given_options(["principal"])):
        raise click.UsageError(f"{given} for --acls; give that, too, or leave it out")
    kind, _, name = principal.partition(":")
    if not kind or not name:
        raise click.BadParameter(
            f"{principal!r} names no kind of principal; write User:{name or kind or 'NAME'}", param_hint="--principal"
        )


def planned_topics(plan: TopologyPlan, defaults: Mapping[str, str]) -> Iterator[PlannedTopic]:
    """Yields repartition topics and changelogs.

    :param defaults: the user's ``topic.`` settings, which win over Kafka Streams' own but not over a store's.
    """
    found: dict[str, PlannedTopic] = {}
    for part in plan.subtopologies:
        sources = _sources(part)
        for topic in part.repartition_topics.values():
            partitions, follows = _partitions(plan, part, topic)
            found[topic.name] = PlannedTopic(
                topic.name, topic.kind, part.id, partitions, follows, {**topic.config, **defaults}
            )
        for store, name in part.changelogs.items():
            # a source topic that serves as changelog is not the application's own
            if name in part.changelog_topics and name not in part.source_topics:
                settings = {**part.changelog_topics[name].config, **defaults, **part.stores[store].topic_config}
                found[name] = PlannedTopic(name, "changelog", part.id, None, sources, settings)
    kinds = ("repartition", "changelog")
    yield from sorted(found.values(), key=lambda topic: (kinds.index(topic.kind), topic.name))


def _created(plan: TopologyPlan, config: StreamsConfig, partitions: int) -> Iterator[tuple[str, int]]:
    """Creates what is missing, topics of users first; yields names and partition counts."""
    from pykstreams.core.clock import SystemClock
    from pykstreams.runtime.clients.admin import ClusterAdmin, TopicSpec
    from pykstreams.runtime.topics.topic_admin import TopicAdmin
    from pykstreams.runtime.topics.user_topics import UserTopics

    admin = ClusterAdmin.open(config.client_supplier, config, f"{config.application_id}-topics", SystemClock())
    admin.wait_for_tools()
    users = UserTopics(admin, plan, dead_letters=config.errors_dead_letter_queue_topic_name)
    unread, unwritten = users.missing(admin.partition_counts())
    specs = [TopicSpec(topic, partitions, config.replication_factor, {}) for topic in sorted({**unread, **unwritten})]
    admin.create_topics(specs)
    own = TopicAdmin(admin, plan, replication=config.replication_factor, embedded=admin.embedded).create_missing()
    yield from ((topic.name, topic.partitions) for topic in [*specs, *own])


def _sources(part: SubtopologyPlan) -> tuple[str, ...]:
    patterns = (f"/{pattern.pattern}/" for pattern in part.source_patterns)
    return tuple(sorted(part.source_topics)) + tuple(sorted(patterns))


def _partitions(plan: TopologyPlan, part: SubtopologyPlan, topic: InternalTopic) -> tuple[int | None, tuple[str, ...]]:
    """Returns the partitions of a repartition topic, or the topics of which the largest has as many.

    Where it is joined or merged with others, these decide; else what its writers read.
    """
    from pykstreams.runtime.topics.copartitioning import deciding_topics

    if topic.partitions is not None:
        return topic.partitions, ()
    together = next((group for group in part.copartition_groups if topic.name in group), (topic.name,))
    follows: list[str] = []
    for name in deciding_topics(part, together):
        if name not in part.repartition_topics:
            follows.append(name)
        elif (given := part.repartition_topics[name].partitions) is not None:
            return given, ()
        else:
            follows += _writers_sources(plan, name)
    return None, tuple(dict.fromkeys(follows))


def _writers_sources(plan: TopologyPlan, topic: str) -> list[str]:
    return [source for part in plan.subtopologies if topic in part.sink_topics for source in _sources(part)]


def _print_table(planned: list[PlannedTopic]) -> None:
    """Prints a line for each topic, then its settings; no line is cut or folded, so that names can be copied."""
    rows = [("topic", "kind", "sub-topology", "partitions")]
    rows += [(topic.name, topic.kind, str(topic.subtopology), topic.partitions_text) for topic in planned]
    name, kind, number = (max(len(row[column]) for row in rows) for column in range(3))
    for row, settings in zip(rows, [{}, *(topic.config for topic in planned)], strict=True):
        click.echo(f"{row[0]:{name}}  {row[1]:{kind}}  {row[2]:{number}}  {row[3]}")
        for key, value in sorted(settings.items()):
            click.echo(f"  {key}={value}")
