"""Joins of streams and tables by the same key."""
