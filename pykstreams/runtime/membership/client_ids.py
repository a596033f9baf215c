"""The client ids of group members, which carry the id of the instance that a member belongs to.

An instance is a state directory, with all processes and workers that share it; it goes by the id of its first process.
"""

from __future__ import annotations

import re
from typing import Final

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def member_client_id(worker: str, instance: str) -> str:
    """The client id of a worker's group member, from which all others know its instance.

    >>> member_client_id("shop-StreamThread-1", "0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1")
    'shop-StreamThread-1-membership-0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1'
    """
    return f"{worker}-membership" if instance in worker else f"{worker}-membership-{instance}"


def instance_of(client_id: str) -> str:
    """The instance that a group member belongs to; without one in its client id it counts as an instance of its own.

    >>> instance_of("shop-StreamThread-1-membership-0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1")
    '0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1'
    """
    found = _ID.findall(client_id)
    return found[-1] if found else client_id
