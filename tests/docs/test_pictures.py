"""Pictures of pages show what their code makes."""

from __future__ import annotations

import sys
from types import ModuleType
from unittest import mock

from tests.docs.pages import ROOT, Page

PICTURE = ROOT / "docs" / "pictures" / "quickstart-topology.svg"


def topology_of_the_quickstart() -> str:
    """The topology of ``shop.py`` as its page has it first, drawn."""
    module = ModuleType("shop")
    [code, *_] = Page("docs/quickstart.md").code
    with mock.patch.dict(sys.modules, shop=module):  # where dataclasses look for their names
        exec(compile(code.text, "shop.py", "exec"), vars(module))
        drawn: str = module.build().to_svg()
    return drawn


def test_picture_of_the_quickstart_is_current() -> None:
    """``python -m tests.docs.test_pictures`` draws it anew."""
    assert topology_of_the_quickstart() == PICTURE.read_text(encoding="utf-8")


if __name__ == "__main__":
    PICTURE.write_text(topology_of_the_quickstart(), encoding="utf-8")
