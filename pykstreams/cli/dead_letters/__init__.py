"""The commands that list, show and replay dead letters."""
