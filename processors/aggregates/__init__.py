"""Aggregations of streams, tables, windows and sessions."""
