"""What the runtime measures, under the names of Kafka Streams."""
