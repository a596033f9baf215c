"""A member of a classic group, beside members of Kafka Streams: joining, leading, and keeping its place."""
