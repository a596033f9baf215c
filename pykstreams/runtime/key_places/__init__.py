"""Whether the keys of input topics lie in the partitions in which the topology takes them to be."""
