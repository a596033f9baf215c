"""The brokers as jobs see them: partition counts and offsets, changelogs that are written, whether they are kept."""
