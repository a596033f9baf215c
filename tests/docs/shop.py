"""``shop.py`` of the quickstart, as its page has it first."""

from __future__ import annotations

from types import ModuleType

from tests.docs.pages import Page, importable


def quickstart_shop() -> ModuleType:
    """Returns a module of its own with the code that the page shows."""
    module = ModuleType("shop")
    [code, *_] = Page("docs/quickstart.md").code
    with importable("shop", module):  # where dataclasses look for their names
        exec(compile(code.text, "shop.py", "exec"), vars(module))
    return module
