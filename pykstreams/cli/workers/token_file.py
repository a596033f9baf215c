"""The file with the token of an application: who serves it reads it, and who asks it."""

from __future__ import annotations

from pathlib import Path

from pykstreams.core.errors import ConfigError


def token_in(file: str) -> str:
    """Returns the token that a file holds; ``ConfigError`` for a file without one that can be sent."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token file {file!r} cannot be read: {error}; name another one") from error
    if not text:
        raise ConfigError(f"the token file {file!r} holds no token; write one into it, without spaces")
    if any(one.isspace() for one in text):
        raise ConfigError(
            f"the token file {file!r} holds a token with a space or the end of a line in it; write one without"
        )
    if not text.isascii():
        raise ConfigError(
            f"the token file {file!r} holds a token with characters that are not ASCII; write one without"
        )
    return text
