"""State as data frames: ``spark.read.format("pykstreams")``, a data source in Python.

One Spark partition reads the store of one task, in Arrow batches. Nothing is pushed down: a reader with ``pushFilters``
gave ``df.count()`` the filter of an earlier ``df.where(...).count()`` (Spark 4.3.0); what is to be left out before it
is read is said by options. This module, ``engines.spark`` and ``engines.spark_rows`` are the doors to
pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pyarrow as pa

from pykstreams.bulk.application import Application
from pykstreams.bulk.engines.spark import SparkEngine
from pykstreams.bulk.state_rows.parts import part_batches, state_parts
from pykstreams.bulk.state_rows.views import StoreSelection, time_of
from pykstreams.core.errors import ConfigError

NAME: Final = "pykstreams"
_OPTIONS: Final = ("app", "store", "path", "topic", "as_of", "raw")
_SWITCH: Final = {"true": True, "false": False}


def register(spark: Any = None, *, app: str | None = None, modules: Sequence[str] = ()) -> None:
    """Makes ``spark.read.format("pykstreams")`` known to a session.

    Options: ``app`` (``path.py`` or ``module:attribute``) and ``store``; ``path`` (a state directory, a copy of it or
    of a task's folder, a bootstrap) or ``topic`` (the changelog); ``as_of`` (a time, for versioned stores); ``raw``
    (``true``: keys and values as bytes); and settings of Kafka Streams by their names, which have dots. ``schema(...)``
    names the columns that are wanted, with their types: a JSON value may be a struct.

    :param spark: the session; ``None`` for the active one, or a new one with all cores of this machine.
    :param app: the application that is meant where the option is left out. On a cluster its code is sent to the
        executors, as a job does it.
    :param modules: files and folders of its code that executors need besides.
    """
    engine = SparkEngine(spark, modules)
    on_executors = None if app is None else engine.send_code(Application(app)).named
    engine.session.dataSource.register(data_source(app, on_executors))


@cache
def data_source(app: str | None = None, on_executors: str | None = None) -> Any:
    """The class that Spark makes a reader from; it derives from one of pyspark, so it is made when it is needed.

    :param app: the application that is meant where none is named.
    :param on_executors: how executors name it.
    """
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class StateReader(DataSourceReader):
        """Reads the store of one task a partition."""

        def __init__(self, options: Mapping[str, str], schema: Any) -> None:
            self._view = view_of(options)
            self._executors_view = self._view
            if on_executors is not None and options["app"] == app:
                application = replace(self._view.application, named=on_executors)
                self._executors_view = replace(self._view, application=application)
            self._path = options.get("path")
            self._topic = options.get("topic")
            self._schema = schema

        def partitions(self) -> Sequence[InputPartition]:
            return [InputPartition(part) for part in state_parts(self._view, self._path, self._topic)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            from pyspark.sql.pandas.types import to_arrow_schema

            return part_batches(self._executors_view, partition.value, to_arrow_schema(self._schema, timezone="UTC"))

    class StateSource(DataSource):
        """The stores of an application."""

        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> Any:
            from pyspark.sql.pandas.types import from_arrow_schema

            return from_arrow_schema(view_of(self._said()).schema)

        def reader(self, schema: Any) -> DataSourceReader:
            return StateReader(self._said(), schema)

        def _said(self) -> dict[str, str]:
            return {**({} if app is None else {"app": app}), **self.options}

    return StateSource


def view_of(options: Mapping[str, str]) -> StoreSelection:
    """The store that options name; ``ConfigError`` says which one is wrong or missing."""
    unknown = sorted(name for name in options if name not in _OPTIONS and "." not in name)
    if unknown:
        raise ConfigError(
            f"the options {unknown} are unknown; there are {', '.join(_OPTIONS)}, and settings of Kafka Streams"
        )
    for name, what in (("app", "the application: 'shop.py' or 'module:attribute'"), ("store", "one of its stores")):
        if not options.get(name):
            raise ConfigError(f"option {name!r} is missing; it names {what}")
    raw = options.get("raw", "false").lower()
    if raw not in _SWITCH:
        raise ConfigError(f"option 'raw' is {raw!r}; expected 'true' or 'false'")
    settings: dict[str, object] = {name: value for name, value in options.items() if "." in name}
    as_of = options.get("as_of")
    application = Application(options["app"], settings)
    return StoreSelection(application, options["store"], None if as_of is None else time_of(as_of), _SWITCH[raw])
