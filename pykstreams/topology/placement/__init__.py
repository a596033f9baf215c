"""The partitions of keys: where a stream of records has them, and the partitioners of topics that joins write."""
