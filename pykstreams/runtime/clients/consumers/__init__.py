"""Consumers: of the records of tasks, of a group, of changelogs, and of what is there at a moment."""
