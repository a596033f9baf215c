"""Everything that can be known to be wrong before a start, in one list."""
