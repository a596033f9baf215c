"""Calls that serve a client's callbacks, in which it raises what has become of it.

The extension raises a fatal error of a client as a bare ``KafkaError``, which is no exception class: no ``except`` with
a name catches it, and a thread would end without a report. In other places it is a ``SystemError`` ("returned
NULL without setting an exception").
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

T = TypeVar("T")


def served(call: Callable[[], T]) -> T:
    """Returns what a call returns, and raises ``KafkaException`` for all that the client raises in it."""
    raised: object
    try:
        return call()
    except SystemError as error:
        raised = KafkaError(KafkaError._FATAL, str(error), True)
    except BaseException:
        raise
    except:  # noqa: E722  # what is no exception is caught by no name
        raised = sys.exc_info()[1]
    # behind the handler, since what is being handled becomes the context of what is raised
    if isinstance(raised, KafkaError):
        raise KafkaException(raised)
    raise SystemError(f"{raised!r} was raised, which is no exception")
