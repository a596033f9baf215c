"""Stores that belong to one operator: records and changes that wait there, in the order of their times.

``waiting`` is of joins of streams, ``join_buffer`` of joins with a table with grace, ``reorder_buffer`` of re-ordered
tables, ``suppression_buffer`` of suppressions.
"""
