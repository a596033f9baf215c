"""One instance of a running application, asked over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast
from urllib.parse import urlencode

import click

from pykstreams.cli.workers.token_file import token_in
from pykstreams.core.errors import ClusterError, ConfigError, SerdeError

Row: TypeAlias = Mapping[str, object]
"""An object of JSON."""

TIMEOUT_S: Final = 30.0

_OTHER_SERVER: Final = "it is no server of pykstreams; give the address of a --http"


@dataclass(frozen=True, slots=True)
class Server:
    """The ``--http`` of a worker.

    :param url: its address, ``http://shop-3:8080``.
    :param token_file: a file with the token of the application.
    :param ca_file: what its certificate is checked with.
    """

    url: str
    token_file: str | None = None
    ca_file: str | None = None

    def get(self, path: str, query: Mapping[str, str], field: str) -> Row:
        """Returns the JSON at a path; ``ClusterError`` where there is none for now, ``ConfigError`` for ever, and
        ``SerdeError`` where a row cannot be read.

        :param field: a field that the answer of pykstreams has.
        """
        if not self.url.startswith(("http://", "https://")):
            raise click.BadParameter(f"{self.url!r} is no address; write http://HOST:PORT", param_hint="--url")
        target = f"{self.url.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
        headers, tls = self._headers(), self._tls()
        try:
            request = urllib.request.Request(target, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=tls) as answer:
                    body = answer.read()
                    if not body:
                        raise ValueError("the answer is empty")
            except urllib.error.HTTPError as error:
                with error:
                    body = error.read(1 << 16)
                raise _failure(target, error.code, body) from None  # it says the number only
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = str(error).strip() or type(error).__name__
            raise ClusterError(f"{self.url} was not reached: {why}; is it the --http of a running worker?") from error
        return _row(target, body, field)

    def _headers(self) -> dict[str, str]:
        return {} if self.token_file is None else {"Authorization": f"Bearer {token_in(self.token_file)}"}

    def _tls(self) -> ssl.SSLContext | None:
        if not self.url.startswith("https:"):
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(
                f"certificates cannot be checked by {self.ca_file!r}: {error}; give a PEM file of certificates"
            ) from error


class NothingThereError(ConfigError):
    """The store has nothing for a key."""


def _row(target: str, body: bytes, field: str) -> Row:
    try:
        found = json.loads(body)
    except ValueError:  # a page for a browser
        found = None
    if not isinstance(found, dict) or field not in found:
        raise ConfigError(f"{target} answered without {field!r}: {_OTHER_SERVER}")
    return cast("Row", found)


def _failure(target: str, status: int, body: bytes) -> Exception:
    try:
        told = json.loads(body)
        kind, detail = str(told["type"]).rpartition(":")[2], str(told["detail"])
    except (ValueError, KeyError, TypeError):
        kind, detail = "", _OTHER_SERVER
    if kind == "no-such-key":
        return NothingThereError(detail)
    if kind == "bad-key":
        return click.BadParameter(detail, param_hint="KEY")
    if kind == "unreadable":
        return SerdeError(detail)
    text = f"{target} answered {status}: {detail}"
    return ClusterError(text) if status >= 500 else ConfigError(text)
