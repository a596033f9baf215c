"""The parts of a backfill: the order of sub-topologies, histories, the running of tasks, what passes between them."""
