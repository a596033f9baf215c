"""The loop of a worker and what it drives: tasks, the state updater, commits, swaps of state."""
