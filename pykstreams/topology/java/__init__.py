"""Orders of Java's collections, which what Kafka Streams prints and tells brokers depends on."""
