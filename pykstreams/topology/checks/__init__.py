"""Findings in a plan before it runs: serdes and sources that are missing, types and subjects that are written."""
