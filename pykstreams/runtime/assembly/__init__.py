"""Puts an application together: workers, standby tasks, global stores, and the clients of each."""
