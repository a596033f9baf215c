"""The process of the server, which the worker starts: ``python -m pykstreams.http.process SOCKET WORKER``.

Both arguments are numbers of open files: the socket to listen at, and the one to the worker, whose first message says
how to serve. Signals are the worker's affair; this process ends when the worker says so or has ended.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
from typing import cast

from pykstreams.core.errors import StreamsError
from pykstreams.http.options import HttpOptions
from pykstreams.http.process.forwarding import Forwarding, LogOfWorker
from pykstreams.http.process.messages import LOG, HowToServe, Message, Messages, frame
from pykstreams.http.server import HttpServer


def main() -> int:
    """Serves until the worker has ended; returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    listening, worker = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    first = _first(worker)
    if first is None:
        return 0
    how = cast("HowToServe", first.content)
    options = HttpOptions(**how["options"])  # type: ignore[arg-type]  # of the worker's own options
    forwarding = Forwarding(worker, options)
    try:
        server = HttpServer(forwarding, listening, options, certificate=how["certificate"], key=how["key"])
        server.start()
    except StreamsError as error:
        worker.sendall(frame(LOG, [logging.ERROR, __name__, str(error)]))
        return 2
    logging.getLogger().addHandler(LogOfWorker(forwarding.tell))
    forwarding.ended.wait()
    server.close()
    return 0


def _first(worker: socket.socket) -> Message | None:
    """The first message of the worker; ``None`` when it ends before. Others are left to whoever reads next."""
    messages = Messages()
    while data := worker.recv(messages.missing):
        for message in messages.of(data):
            return message
    return None


if __name__ == "__main__":
    sys.exit(main())
