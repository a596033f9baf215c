"""Values and protocols that every layer shares; imports the standard library only (and ``mmh3`` in ``hashing``)."""
