"""Tables: kept, read, transformed, reordered and suppressed."""
