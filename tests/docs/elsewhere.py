"""What no test of all pages runs or checks, because a test of its own does, or because nothing can."""

from __future__ import annotations

from collections.abc import Mapping

RUN_BY: Mapping[str, str] = {
    "docs/quickstart.md": "tests/integration/test_quickstart_page.py",
    "docs/guides/backfill.md": "tests/integration/test_commands_of_pages.py",
    "docs/guides/bootstrap-from-a-snapshot.md": "tests/integration/test_commands_of_pages.py",
    "docs/reference/options.md": "tests/docs/test_commands.py",
    "docs/guides/spark-clusters.md": "tests/spark/test_isolated_executors.py",
    "docs/guides/state-as-data-frames.md": "tests/spark/test_state_as_data_frames_page.py",
}
"""Pages whose code and commands a test of their own runs: they need brokers, Spark, or files of a project. The examples
of helps, on the page of options, are in no order; the commands themselves run as those of cli.md.
"""

OTHER_LANGUAGES: frozenset[str] = frozenset({"docs/coming-from/kafka-streams.md"})
"""Pages that show code of other languages beside that in Python."""

NOT_RUN: Mapping[str, str] = {
    "make ": "`make` is what runs these tests, and `make demo` has a test of its own",
    "pip install ": "the tests have their environment; names and extras are checked, and tests/packaging installs",
    "python -m benchmarks": "takes minutes; tests/integration/test_benchmark_runs.py runs the benchmarks in small",
    "python -m tests.faults": "takes an hour, and is what the page reports of",
    "pytest -m nightly ": "takes a quarter of an hour or more, and is what the page reports of",
    "python -c ": "asks how the interpreter of the reader was built",
    "kafka-topics.sh ": "a tool of Kafka; tests create topics by the admin client",
    "kafka-console-": "a tool of Kafka; tests produce and consume by clients",
}
"""Beginnings of commands that are not run, each with the reason."""

NOT_RUN_CODE: Mapping[tuple[str, int], str] = {
    (
        "docs/guides/bootstrap-from-a-snapshot.md",
        1,
    ): "needs workers that run; tests/integration/test_bootstrap_swap.py does it",
}
"""Blocks of code, by page and number, that are not run, each with the reason."""
