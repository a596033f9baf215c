"""Bulk jobs over state: bootstrap it from snapshots, export it, read it as data frames; with Spark or without.

Needs the extra ``spark`` of the package (pyarrow for every engine; pyspark and Java 17 or 21 for ``engine="spark"``).
"""

from pykstreams.bulk.backfill import BackfillReport, backfill
from pykstreams.bulk.backfills.history import TopicHistory
from pykstreams.bulk.bootstrap import BootstrapReport, bootstrap
from pykstreams.bulk.sources.sources import Files, KafkaTopic, SparkRead
from pykstreams.bulk.sources.store_bootstrap import StoreBootstrap
from pykstreams.bulk.state_rows.data_source import register
from pykstreams.bulk.state_rows.export import ExportReport, export_state

__all__ = [
    "BackfillReport",
    "BootstrapReport",
    "ExportReport",
    "Files",
    "KafkaTopic",
    "SparkRead",
    "StoreBootstrap",
    "TopicHistory",
    "backfill",
    "bootstrap",
    "export_state",
    "register",
]
