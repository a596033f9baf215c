"""The clients of Kafka, each behind a class of ours; nothing else of the runtime imports ``confluent_kafka``."""
