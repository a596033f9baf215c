"""The Python that ``docs/coming-from/kafka-streams.md`` sets beside Java has the names and arguments that there are."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import pykstreams
from pykstreams.testing import TestInputTopic, TestOutputTopic, TopologyTestDriver

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from" / "kafka-streams.md").read_text(encoding="utf-8")
OBJECTS: dict[str, type] = {
    "stream": pykstreams.KStream,
    "table": pykstreams.KTable,
    "grouped": pykstreams.KGroupedStream,
    "streams": pykstreams.KafkaStreams,
    "context": pykstreams.ProcessorContext,
    "record": pykstreams.Record,
    "driver": TopologyTestDriver,
    "topic": TestInputTopic,
    "out": TestOutputTopic,
}
"""The names that the tables have for objects."""

EXPRESSIONS = [
    code
    for line in PAGE.partition("## Names, side by side")[2].splitlines()
    if line.startswith("| `") and line.count(" | ") == 1
    for code in re.findall(r"`([^`]+)`", line.rpartition(" | ")[2])
    if re.match(r"(?:[A-Z]\w+\(|[A-Z]\w+\.|stream|table|grouped|context|driver|topic|out|record)", code)
]


def test_most_rows_are_code() -> None:
    assert len(EXPRESSIONS) > 40


@pytest.mark.parametrize("code", EXPRESSIONS)
def test_python_beside_java_has_names_and_arguments_that_there_are(code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = OBJECTS.get(node.value.id) or getattr(pykstreams, node.value.id, None)

            assert owner is None or hasattr(owner, node.attr), node.attr
        if isinstance(node, ast.Call):
            check_arguments(node)


def check_arguments(call: ast.Call) -> None:
    """Checks that what is called takes the keywords that it is given."""
    called: object = None
    if isinstance(call.func, ast.Name):
        called = getattr(pykstreams, call.func.id)
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        name = call.func.value.id
        called = getattr(OBJECTS.get(name) or getattr(pykstreams, name), call.func.attr)
    if called is None or called is pykstreams.Record.replace:
        return
    assert callable(called)
    taken = inspect.signature(called).parameters

    assert {keyword.arg for keyword in call.keywords} <= set(taken), (ast.unparse(call), list(taken))
