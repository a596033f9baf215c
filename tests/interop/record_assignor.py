"""Records what Kafka Streams' own classes write and decide: ``python -m tests.interop.record_assignor``."""

from __future__ import annotations

import json
import lzma
import subprocess
from collections.abc import Iterable

from tests.interop.assignor_questions import Question, assignments, assignor_groups, random_groups, subscriptions
from tests.interop.java_host import HERE, JVM, compiled
from tests.unit.runtime.membership.java_vectors import ASSIGNORS, GROUPS, USER_DATA

RECORDER = "org.apache.kafka.streams.processor.internals.Recorder"
SEED = 15
COUNT = 2500
ASSIGNOR_SEED = 924
ASSIGNOR_COUNT = 600


def ask_java(questions: Iterable[Question]) -> list[tuple[Question, Question]]:
    """Puts questions to Java, and returns them with its answers."""
    asked = list(questions)
    done = subprocess.run(
        ["java", *JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", recorder_path(), RECORDER],
        input="".join(json.dumps(question) + "\n" for question in asked),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise AssertionError(f"Java has no answers: {done.stderr[-4000:]}")
    return list(zip(asked, map(json.loads, done.stdout.splitlines()), strict=True))


def recorder_path() -> str:
    """The class path of the recorder."""
    return compiled(HERE / "java" / "Recorder.java")


def main() -> None:
    USER_DATA.parent.mkdir(exist_ok=True)
    recorded = ask_java([*subscriptions(), *assignments()])
    lines = [json.dumps(pair, sort_keys=True, separators=(",", ":")) for pair in recorded]
    USER_DATA.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    for path, questions in (
        (GROUPS, random_groups(SEED, COUNT)),
        (ASSIGNORS, assignor_groups(ASSIGNOR_SEED, ASSIGNOR_COUNT)),
    ):
        with lzma.open(path, "wt", preset=9 | lzma.PRESET_EXTREME) as out:
            for pair in ask_java(questions):
                out.write(json.dumps(pair, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
