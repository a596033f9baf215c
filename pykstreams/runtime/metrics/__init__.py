"""The metrics of the runtime, under the names of Kafka Streams."""
