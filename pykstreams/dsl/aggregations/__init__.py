"""Aggregations in the graph: grouped records, their late records, and the suppression of results."""
