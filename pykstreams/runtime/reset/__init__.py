"""Resets an application: offsets of its inputs, its internal topics and its local state."""
