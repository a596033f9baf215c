"""Standby tasks: which of them a process keeps, and how they are kept up to date."""
