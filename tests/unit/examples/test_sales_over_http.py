"""The page of ``sales_over_http`` shows what its stores answer over HTTP."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from examples.running import examples
from pykstreams import Serdes
from tests.unit.http.served_application import client_of
from tests.unit.runtime.queries.queried import Application

EXAMPLE = examples()["sales_over_http"]
PAGE = (EXAMPLE.folder / "README.md").read_text(encoding="utf-8")


def test_answers_of_the_page_are_those_of_the_stores(tmp_path: Path) -> None:
    topology, _ = EXAMPLE.topology()
    application = Application(topology, tmp_path, topic="sales")
    application.start()
    write = Serdes.long().serializer.serialize
    for record in EXAMPLE.records:
        time = round(record.time.timestamp() * 1000)
        application.feed_raw((record.key.encode(), write("sales", record.value), time))
    client = client_of(application)
    asked = [shlex.split(line)[1] for line in re.findall(r"^curl .*", PAGE, re.MULTILINE)]
    block = re.search(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert block is not None
    shown = [json.loads(line) for line in block[1].splitlines()]

    assert [found(client.get(url.removeprefix("localhost:7070")).json) for url in asked] == [
        found(one) for one in shown
    ]
    application.close()


def found(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without the instance and the partition that it is from."""
    return {name: value for name, value in answer.items() if name != "from"}
