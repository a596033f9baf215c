"""Standby tasks: where they are placed, and how they are kept up to date."""
