"""Joins of tables by a foreign key, and by other keys than their own."""
