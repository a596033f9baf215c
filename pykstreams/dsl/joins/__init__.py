"""Joins in the graph: of streams, of streams with tables, and of tables."""
