"""How keys, values, timestamps and headers become the bytes of rows and changelog records."""
