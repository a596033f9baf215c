"""Sharing out tasks among the members of a group: pure functions, with Kafka Streams' results."""
