"""Settings of an application: names, types, defaults, how values are read, and which of them clients get."""
