"""Serdes over a schema registry, and what registries say of their schemas before the first record is written."""
