"""Calls of other instances of the application, by the addresses that they have told the group; each has a bound."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson

from pykstreams.core.clock import Clock
from pykstreams.http.options import HttpOptions
from pykstreams.http.problems import ProblemError, problem_kinds
from pykstreams.runtime.membership.host_info import HostInfo

_OF_ROWS: Final = frozenset({"no-json", "unreadable"})
"""Problems of rows, which are the same whoever asks."""

_PASSED_ON: Final = _OF_ROWS | {kind for kind, status, _ in problem_kinds() if status in (400, 404, 410)}

_ADDRESS: Final = "see to it that application.server is the address of its --http, and of nothing else"

_CHUNK: Final = 1 << 16

_TLS_ENDED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""Errors of TLS by which a connection has ended, as others do."""

_NO_HTTP: Final = (http.client.BadStatusLine, http.client.LineTooLong)
"""The first one also stands for a connection that was closed; then it is a ``ConnectionError``, too."""


class Peers:
    """Asks other instances, by connections that are kept for the next question; any thread may ask.

    An instance that cannot be reached, or not in time, is a ``ProblemError`` of kind ``unavailable``; one that is not
    understood, or whose certificate is not believed, is one of kind ``bad-peer``. One that was late keeps few waiting
    until it answers: others are refused at once, and leave their threads to questions for other instances.

    :param most_late: how many may wait for an instance that was late.
    """

    def __init__(self, options: HttpOptions, clock: Clock, *, most_late: int) -> None:
        self._options = options
        self._clock = clock
        self._most_late = most_late
        self._timeout_s = options.peer_timeout_ms / 1000
        self._kept_s = options.client_timeout_ms / 1000
        """For how long a connection is kept: then the other instance closes it, too."""
        self._most_bytes = 4 * options.max_answer_bytes + (1 << 20)
        self._lock = threading.Lock()
        self._kept: dict[HostInfo, list[tuple[float, http.client.HTTPConnection]]] = {}
        """The connections that nobody uses, and since when, the oldest first."""
        self._asked: Counter[HostInfo] = Counter()
        """How many questions wait for each instance."""
        self._late: dict[HostInfo, float] = {}
        """When instances were late that have not answered since."""
        self._closed = False
        self._tls = ssl.create_default_context(cafile=options.peer_ca_file) if options.peer_tls else None

    def ask(self, host: HostInfo, target: str) -> object:
        """The JSON that an instance answers to ``GET target``; runs in a thread."""
        where = f"{host.host}:{host.port}"
        with self._asking(host, where):
            for kept in (self._take(host), None):
                began = self._clock.monotonic()
                try:
                    status, body = self._exchange(host, kept, target)
                    break
                except (OSError, UnicodeError, http.client.HTTPException) as error:  # UnicodeError: no name of a host
                    # a name may be looked up for longer than the client has patience, and not be found then
                    if isinstance(error, TimeoutError) or self._clock.monotonic() - began >= self._timeout_s:
                        self._note_late(host)
                    elif kept is not None:  # it may have been closed meanwhile
                        continue
                    raise _problem(where, error) from error
        return self._understood(where, status, body)

    def close(self) -> None:
        """Closes the connections that nobody uses; the others are closed with their answers."""
        with self._lock:
            self._closed = True
            left, self._kept = self._kept, {}
        for kept in left.values():
            for _, connection in kept:
                connection.close()

    @contextmanager
    def _asking(self, host: HostInfo, where: str) -> Iterator[None]:
        with self._lock:
            waiting = self._asked[host]
            if host in self._late and waiting >= self._most_late:
                raise ProblemError(
                    "unavailable",
                    f"the instance at {where} has not answered in time, and {waiting} questions wait for it already; "
                    "ask again a little later, or with stale=allow, which asks copies",
                    host=where,
                )
            self._asked[host] += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked[host] -= 1
                if not self._asked[host]:
                    del self._asked[host]

    def _take(self, host: HostInfo) -> http.client.HTTPConnection | None:
        """A connection that was kept, if there is one; closes those that were kept for too long."""
        with self._lock:
            old = self._forgotten(self._clock.monotonic() - self._kept_s)
            kept = self._kept.get(host)
            found = kept.pop()[1] if kept else None
        for one in old:
            one.close()
        return found

    def _forgotten(self, before: float) -> list[http.client.HTTPConnection]:
        """Takes out what nobody has used since, as that of instances that have gone; the lock is held."""
        found: list[http.client.HTTPConnection] = []
        for host, kept in list(self._kept.items()):
            while kept and kept[0][0] < before:
                found.append(kept.pop(0)[1])
            if not kept:
                del self._kept[host]
        self._late = {host: at for host, at in self._late.items() if at >= before}
        return found

    def _note_late(self, host: HostInfo) -> None:
        with self._lock:
            self._late[host] = self._clock.monotonic()

    def _exchange(self, host: HostInfo, kept: http.client.HTTPConnection | None, target: str) -> tuple[int, bytes]:
        connection = self._made(host) if kept is None else kept
        headers = {} if self._options.token is None else {"Authorization": f"Bearer {self._options.token}"}
        before = self._clock.monotonic() + self._timeout_s
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = self._body(answer, before)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._late.pop(host, None)
            keeps = not self._closed and not answer.will_close
            if keeps:
                self._kept.setdefault(host, []).append((self._clock.monotonic(), connection))
        if not keeps:
            connection.close()
        return answer.status, body

    def _made(self, host: HostInfo) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(host.host, host.port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(host.host, host.port, timeout=self._timeout_s, context=self._tls)

    def _body(self, answer: http.client.HTTPResponse, before: float) -> bytes:
        """Reads the body; ``TimeoutError`` where it is not whole before a time: each bit of it may come soon."""
        body = bytearray()
        while part := answer.read1(_CHUNK):
            body += part
            if len(body) > self._most_bytes:
                raise http.client.HTTPException(f"its answer has more than {self._most_bytes} bytes")
            if answer.length != 0 and self._clock.monotonic() > before:
                raise TimeoutError(f"its answer was not whole in {self._timeout_s:g} s")
        if answer.length:
            raise http.client.IncompleteRead(bytes(body), answer.length)
        answer.close()
        return bytes(body)

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
        if kind == "unknown-store":  # it was asked because this instance knows the store
            raise ProblemError(
                "unavailable",
                f"the instance at {where} has a topology without this store; ask again when it has been replaced by "
                "one of this topology",
                host=where,
            )
        if kind in _PASSED_ON:
            raise ProblemError(kind, detail, host=where)
        if status == 401:
            detail = "it did not take the token of this instance; give all instances the same one"
        if status == 503 and kind == "not-up-to-bound":
            raise ProblemError(kind, detail, host=where)
        raise ProblemError("unavailable", f"the instance at {where} answered {status}: {detail}", host=where)


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
