"""Bulk jobs over state: bootstrap it from snapshots, export it, read it as data frames; with Spark or without.

Needs the extra ``spark`` of the package (pyarrow for every engine; pyspark and Java 17 or 21 for ``engine="spark"``).
"""

from pykstreams.spark.backfill import BackfillReport, backfill
from pykstreams.spark.backfills.history import TopicHistory
from pykstreams.spark.bootstrap import BootstrapReport, bootstrap
from pykstreams.spark.data_source import register
from pykstreams.spark.export import ExportReport, export_state
from pykstreams.spark.sources import Files, KafkaTopic, SparkRead
from pykstreams.spark.store_bootstrap import StoreBootstrap

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
