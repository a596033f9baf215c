"""``"module:attribute"`` texts: how settings and the command line name an object to import."""

from __future__ import annotations

import importlib
import re

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_reference(text: str) -> bool:
    """Whether a text has the form ``module:attribute``; both sides may be dotted.

    >>> is_reference("shop.serdes:OrderSerde"), is_reference("OrderSerde")
    (True, False)
    """
    return _REFERENCE.fullmatch(text) is not None


def load_reference(reference: str) -> object:
    """Imports what ``module:attribute`` names.

    Raises ``ValueError`` for a text of another form, ``ImportError`` and ``AttributeError`` as Python does,
    and whatever the module itself raises.

    >>> load_reference("string:digits")
    '0123456789'
    """
    if not is_reference(reference):
        raise ValueError(f"{reference!r} is not of the form 'module:attribute'")
    module, _, path = reference.partition(":")
    found: object = importlib.import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found
