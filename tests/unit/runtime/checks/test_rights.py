"""The rights that an application needs, as an administrator gives them."""

from __future__ import annotations

import shlex

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.rights import acl_lines
from tests.unit.runtime.plans import part, plan, sink, source


def test_commands_of_an_administrator_cover_topics_group_and_transactions() -> None:
    topology = plan(
        part(0, source("A", "orders"), sink("B", "shop-x-repartition"), sink("C", "bills")),
        part(1, source("D", "shop-x-repartition"), repartition=[("shop-x-repartition", None)]),
    )
    config = StreamsConfig({"application.id": "shop", "processing.guarantee": "exactly_once_v2"})
    begin = "kafka-acls.sh --bootstrap-server broker:9092 --add --allow-principal User:shop"

    assert list(acl_lines(topology, config, "broker:9092", "User:shop")) == [
        f"{begin} --operation Describe --operation Write --topic bills",
        f"{begin} --operation Describe --operation Read --topic orders",
        f"{begin} --operation Create --operation Delete --operation Describe --operation DescribeConfigs "
        "--operation Read --operation Write --topic shop- --resource-pattern-type prefixed",
        f"{begin} --operation Describe --operation Read --group shop",
        f"{begin} --operation Describe --operation Write --transactional-id shop- --resource-pattern-type prefixed",
    ]


def test_a_principal_is_one_word_for_the_shell() -> None:
    topology = plan(part(0, source("A", "orders")))
    principal = "User:CN=shop, O=Smith & Sons"
    config = StreamsConfig({"application.id": "shop", "bootstrap.servers": "broker:9092"})
    lines = [line for line in acl_lines(topology, config, "broker:9092", principal) if not line.startswith("#")]

    assert lines
    assert all(principal in shlex.split(line) for line in lines)
