"""Topics on the cluster: which must be there, which are created, how many partitions they have."""
