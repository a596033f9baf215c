"""Bulk jobs over state: bootstraps, backfills, state as rows; ``pykstreams.spark`` is the public door to them."""
