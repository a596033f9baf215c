"""The Spark engine before there is a session; with one it is tested in ``tests/spark``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pykstreams.bulk.engines.spark import bounds_of, explained, open_session
from pykstreams.core.errors import BootstrapError, ConfigError


def test_partitions_with_many_rows_are_divided_at_sampled_keys() -> None:
    keys = [f"{number:03}".encode() for number in range(100)]

    assert {0: (b"025", b"050", b"075")} == bounds_of({0: keys, 1: keys[:10]}, 4)
    assert {} == bounds_of({0: keys, 1: keys}, 2)


def test_a_module_that_executors_do_not_have_is_named() -> None:
    errors = pytest.importorskip("pyspark.errors")
    text = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "script.py", line 160, in _loaded
pykstreams.dsl.script.ScriptError: shop raised ModuleNotFoundError while it was loaded: No module named 'prices'
"""

    expected = r"find no module 'prices': name its file or package by modules=\[...\] \(--module\)"
    with pytest.raises(BootstrapError, match=expected), explained("nothing was built"):
        raise errors.PythonException(text)


def test_an_error_of_java_is_explained_in_one_line() -> None:
    protocol = pytest.importorskip("py4j.protocol")

    text = """An error occurred while calling o142.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file rows.csv.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:920)
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING] Malformed records are detected.
Parse Mode: FAILFAST.
Caused by: org.apache.spark.SparkRuntimeException: [MALFORMED_CSV_RECORD] Malformed CSV record: there
\t... 44 more
"""
    without_java = {"__init__": lambda self: None, "__str__": lambda self: text}
    error = type("ErrorOfJava", (protocol.Py4JJavaError,), without_java)

    expected = (
        "nothing was built, and nothing is published: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] "
        "Encountered error while reading file rows.csv. (caused by org.apache.spark.SparkRuntimeException: "
        "[MALFORMED_CSV_RECORD] Malformed CSV record: there)"
    )
    with pytest.raises(BootstrapError) as said, explained("nothing was built"):
        raise error
    assert expected == str(said.value)


def test_without_pyspark_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    with pytest.raises(ConfigError, match=r"pip install 'pykstreams\[spark\]'.*or use engine='local'"):
        open_session()


def test_a_home_of_java_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(
        ConfigError, match=r"JAVA_HOME is '.*', where there is no bin/java; set it to a JDK of 17 or 21"
    ):
        open_session()


def test_without_java_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    with pytest.raises(ConfigError, match=r"needs Java 17 or 21.*install a JDK"):
        open_session()
