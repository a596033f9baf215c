"""Sinks that are not topics."""
