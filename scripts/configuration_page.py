"""Makes docs/reference/configuration.md from the table of settings: ``python scripts/configuration_page.py``.

A test compares the page with what this script gives, so run it after every change of the table.
"""
# ruff: noqa: E501 - rows of tables cannot be broken

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pykstreams.core.config import ConfigKey, Importance, StreamsConfig
from pykstreams.core.settings.keys import REMOVED_KEYS
from pykstreams.core.settings.librdkafka_keys import JAVA_CLIENT_KEYS
from pykstreams.core.settings.types import REQUIRED

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "configuration.md"

_INTRODUCTION = """\
<!-- made by scripts/configuration_page.py; do not edit -->

# Configuration

Settings have the names, types and defaults of Kafka Streams 4.3.1. `StreamsConfig` takes them as a mapping of dotted
names, as keyword arguments with underscores for dots, or both:

```python
from pykstreams import StreamsConfig

StreamsConfig({"application.id": "shop", "bootstrap.servers": "localhost:9092"}, commit_interval_ms=5000)
```

- A configuration is checked once, when it is made, and never changes; `config.replace(poll_ms=50)` gives a changed copy.
  A `ConfigError` tells every problem at once, and the nearest name for one that is unknown.
- It is a mapping (`config["commit.interval.ms"]`), and settings are attributes, too (`config.commit_interval_ms`).
- Numbers may be text (`"5000"`), milliseconds a `timedelta`, lists a text with commas.
- What is a class in Java takes a class, an object, a function where that makes sense, or `"module:attribute"`, which is
  imported when it is needed.
- Settings under `app.` are your own; they are passed through as they are. As keyword arguments and in the environment every
  underscore after `app_` is a dot.

On the command line, `--set key=value` wins over the environment (`PYKSTREAMS_COMMIT_INTERVAL_MS`), which wins over
`--config FILE`; see [the command line](cli.md).

## Settings of the Kafka clients

Every property of librdkafka 2.x is known. Without a prefix it goes to each client that has it, `security.*`, `sasl.*` and
`ssl.*` to all of them; a prefix names the client, and the nearer one wins:

| prefix | goes to |
|---|---|
| `consumer.` | all consumers |
| `main.consumer.` | the consumer of the input topics |
| `restore.consumer.` | the consumer that reads changelogs back |
| `global.consumer.` | the consumer of global stores |
| `producer.` | the producer |
| `admin.` | the admin client |
| `topic.` | internal topics when they are created; brokers' names follow (`topic.min.insync.replicas`) |
| `client.tag.` | tags of this worker, for `rack.aware.assignment.tags` |

What an application needs itself cannot be set to something else: `enable.auto.commit`, `enable.auto.offset.store`,
`allow.auto.create.topics`, `group.id`, `partition.assignment.strategy`, consumers' `group.protocol`, `transactional.id`,
`delivery.report.only.error`, and under exactly-once `isolation.level` and `enable.idempotence`.

Clients start from these values; those of Java are kept unless the last column gives another reason.

| setting | consumers | producer | why |
|---|---|---|---|
| `auto.offset.reset` | `earliest` (main) | | as Kafka Streams |
| `isolation.level` | `read_uncommitted`; `read_committed` under exactly-once, and for changelogs unless inputs serve as such | | as Kafka Streams; swaps of state are transactions |
| `session.timeout.ms`, `heartbeat.interval.ms` | 6000, 2000 (main) | | the tasks of a worker that died move after 6 s |
| `fetch.queue.backoff.ms` | 1 | | measured: 1.25 - 1.48 M records/s from one partition, against 178 k/s at librdkafka's default of 1000 |
| `socket.timeout.ms` | 10000 | 40000; 10000 under exactly-once | a fetch that was on its way when a network was cut comes long after it is back, or never. `request.timeout.ms` where that is set |
| `socket.connection.setup.timeout.ms` | 10000 | 10000 | as Java; administrative clients, too |
| `fetch.wait.max.ms` | 10 (restore) | | a broker answers one fetch of a connection at a time, and one that waits at the end of a changelog holds up the others |
| `queued.min.messages`, `max.partition.fetch.bytes` | 2000, 262144 (main) | | measured: pausing throws prefetched records away; fetching little ahead keeps 84 % of the rate |
| `linger.ms` | | 100 | as Kafka Streams |
| `batch.size` | | 16384 | as Java; 65536 and more cost less CPU per record (about a tenth of a send), so raise it for throughput |
| `partitioner` | | `murmur2_random` | the partitions of Java for the same keys |
| `enable.idempotence` | | `true` | as Java |
| `delivery.timeout.ms` | | 120000; under exactly-once left to librdkafka | as Java; librdkafka fits it into the transaction. A worker under at-least-once hands librdkafka `session.timeout.ms` less `heartbeat.interval.ms` (4000), and sends again until this time has passed |
| `transaction.timeout.ms` | | 10000 under exactly-once; 60000 for swaps of state | as Kafka Streams |
"""


def page() -> str:
    """The text of docs/reference/configuration.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    keys = StreamsConfig.describe()
    for importance in Importance:
        yield f"## Settings of {importance.value} importance\n"
        for key in keys:
            if key.importance is importance:
                yield from _key(key)
    yield "## Names that are unknown here\n"
    yield "Deprecated settings of Kafka Streams, and settings that only the Java clients have:\n"
    yield "| name | instead |"
    yield "|---|---|"
    for name, instead in sorted({**REMOVED_KEYS, **JAVA_CLIENT_KEYS}.items()):
        yield f"| `{name}` | {instead} |"


def _key(key: ConfigKey) -> Iterator[str]:
    yield f"### `{key.name}`\n"
    yield f"{key.doc}\n"
    yield f"- Type: {key.type.value}; {key.expected}"
    yield f"- Default: {_default(key)}"
    if key.not_offered:
        yield f"- Only the default can be used: {key.not_offered}"
    yield ""


def _default(key: ConfigKey) -> str:
    if key.default is REQUIRED:
        return "none, it must be given"
    if key.default_text is not None:
        return f"`{key.default_text}`"
    if key.default is None:
        return "not set"
    if key.default in ("", ()):
        return "empty"
    text = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
    return f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
