"""The clients of Kafka, each behind a class of ours; nothing else of the runtime imports ``confluent_kafka``."""

from pykstreams.runtime.clients.quiet_layouts import quiet_layouts

with quiet_layouts():
    import kafka  # noqa: F401  # all of its messages, before a module here takes one of them
