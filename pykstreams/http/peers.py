"""Calls of other instances of the application, by the addresses that they have told the group; each has a bound."""

from __future__ import annotations

import http.client
import ssl
import threading
from typing import Final

import orjson

from pykstreams.http.options import HttpOptions
from pykstreams.http.problems import ProblemError, problem_kinds
from pykstreams.runtime.membership.host_info import HostInfo

_PASSED_ON = frozenset(kind for kind, status, _ in problem_kinds() if status in (400, 404, 410) or kind == "no-json")

_ADDRESS: Final = "see to it that application.server is the address of its --http, and of nothing else"

_TLS_ENDED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""Errors of TLS by which a connection has ended, as others do."""

_NO_HTTP: Final = (http.client.BadStatusLine, http.client.LineTooLong)
"""The first one also stands for a connection that was closed; then it is a ``ConnectionError``, too."""


class Peers:
    """Asks other instances; each thread keeps its connections.

    An instance that cannot be reached, or not in time, is a ``ProblemError`` of kind ``unavailable``; one that is not
    understood, or whose certificate is not believed, is one of kind ``bad-peer``.
    """

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._most_bytes = 4 * options.max_answer_bytes + (1 << 20)
        self._own = threading.local()
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._tls = ssl.create_default_context(cafile=options.peer_ca_file) if options.peer_tls else None

    def ask(self, host: HostInfo, target: str) -> object:
        """The JSON that an instance answers to ``GET target``; runs in a thread."""
        where = f"{host.host}:{host.port}"
        for again in (True, False):
            kept = self._connections().get(host)
            try:
                status, body = self._exchange(host, target)
                break
            except (OSError, UnicodeError, http.client.HTTPException) as error:  # UnicodeError: a host that is no name
                self._forget(host)
                if again and kept is not None:  # a connection that was kept may have been closed meanwhile
                    continue
                raise _problem(where, error) from error
        return self._understood(where, status, body)

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            left, self._open = self._open, set()
        for connection in left:
            connection.close()

    def _exchange(self, host: HostInfo, target: str) -> tuple[int, bytes]:
        connections = self._connections()
        connection = connections.get(host)
        if connection is None:
            seconds = self._options.peer_timeout_ms / 1000
            if self._tls is None:
                connection = http.client.HTTPConnection(host.host, host.port, timeout=seconds)
            else:
                connection = http.client.HTTPSConnection(host.host, host.port, timeout=seconds, context=self._tls)
            connections[host] = connection
            with self._lock:
                self._open.add(connection)
        headers = {} if self._options.token is None else {"Authorization": f"Bearer {self._options.token}"}
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        body = answer.read(self._most_bytes + 1)
        if len(body) > self._most_bytes:
            raise http.client.HTTPException(f"its answer has more than {self._most_bytes} bytes")
        return answer.status, body

    def _understood(self, where: str, status: int, body: bytes) -> object:
        try:
            found: object = orjson.loads(body)
        except ValueError as error:
            raise ProblemError(
                "bad-peer",
                f"the instance at {where} answered {status} and no JSON; {_ADDRESS}",
            ) from error
        if status == 200:
            return found
        kind, detail = "", ""
        if isinstance(found, dict):
            kind, detail = str(found.get("type", "")).rpartition(":")[2], str(found.get("detail", ""))
        if kind in _PASSED_ON:
            raise ProblemError(kind, detail, host=where)
        if status == 401:
            detail = "it did not take the token of this instance; give all instances the same one"
        if status == 503 and kind == "not-up-to-bound":
            raise ProblemError(kind, detail, host=where)
        raise ProblemError("unavailable", f"the instance at {where} answered {status}: {detail}", host=where)

    def _connections(self) -> dict[HostInfo, http.client.HTTPConnection]:
        found: dict[HostInfo, http.client.HTTPConnection] | None = getattr(self._own, "connections", None)
        if found is None:
            found = self._own.connections = {}
        return found

    def _forget(self, host: HostInfo) -> None:
        connection = self._connections().pop(host, None)
        if connection is not None:
            with self._lock:
                self._open.discard(connection)
            connection.close()


def _problem(where: str, error: Exception) -> ProblemError:
    """The problem for an error of a call."""
    if isinstance(error, ssl.SSLError) and not isinstance(error, _TLS_ENDED):
        kind = "bad-peer"
        told = (
            f"was not believed: {error}; give all instances certificates of an authority that all of them know "
            "(--http-tls-cert, --http-tls-ca), for the hosts that they are asked at"
        )
    elif isinstance(error, _NO_HTTP) and not isinstance(error, ConnectionError):
        kind, told = "bad-peer", f"answered no HTTP; {_ADDRESS}"
    else:
        kind = "unavailable"
        told = f"was not reached: {error or type(error).__name__}; ask again, or with stale=allow, which asks copies"
    return ProblemError(kind, f"the instance at {where} {told}", host=where)
