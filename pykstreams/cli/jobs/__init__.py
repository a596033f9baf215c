"""The commands of jobs that make state in bulk."""
