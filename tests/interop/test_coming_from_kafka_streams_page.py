"""The Java program of ``docs/coming-from/kafka-streams.md`` has the topology that the page says, and Python has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.interop.java_host import compiled

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from" / "kafka-streams.md").read_text(encoding="utf-8")


def test_java_describes_the_topology_that_the_page_shows(java_path: str, tmp_path: Path) -> None:
    [program] = re.findall(r"^```java\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    [described] = re.findall(r"^```\n(Topologies:\n.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "Cities.java").write_text(program, encoding="utf-8")

    ran = subprocess.run(
        ["java", "-cp", compiled(tmp_path / "Cities.java"), "Cities"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert ran.stdout == described
