"""What can go wrong with a case that says nothing about how Kafka Streams behaves."""

from __future__ import annotations


class FormatError(Exception):
    """The case file itself is wrong: an unknown field, operation, function or value."""


class NotBuiltError(Exception):
    """The case needs a part of pykstreams that does not exist."""


class ThrownError(Exception):
    """Raised by the functions of a case that are there to fail (``throw:...``); its text is the message."""
