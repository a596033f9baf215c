"""The network between workers and brokers: a proxy before each node, which can hold up what one worker sends and gets.

A worker that is cut off keeps its connections, as by packets that are lost: nothing passes, nobody is told, and what
was on its way arrives when the network is back. New connections wait, too.

Whose a connection is tells ``/proc``, so there is no such network but on Linux.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_CHUNK = 1 << 16
_START_S = 10.0
_HOST = "127.0.0.1"
_PROC = Path("/proc")
_LOCAL, _REMOTE, _INODE = 1, 2, 9
"""Fields of a line of ``/proc/net/tcp``."""


class Network:
    """Proxies, one for each node, on a thread of their own."""

    possible = sys.platform == "linux"

    def __init__(self, owners: Callable[[], Mapping[int, str]]) -> None:
        """Prepares the proxies.

        :param owners: the process ids of those who live, and what each is called.
        """
        self._owners = owners
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._there: dict[str, asyncio.Event] = {}
        self._targets: list[int] = []
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    @classmethod
    @contextmanager
    def started(cls, nodes: int, owners: Callable[[], Mapping[int, str]]) -> Iterator[Network]:
        """A network for the length of a block; where it leads is told to ``lead_to``."""
        network = cls(owners)
        network._thread.start()
        try:
            network._call(network._listen(nodes))
            yield network
        finally:
            network._call(network._close())
            network._loop.call_soon_threadsafe(network._loop.stop)
            network._thread.join()
            network._loop.close()

    @property
    def ports(self) -> list[int]:
        """Where the proxies listen, node by node."""
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{_HOST}:{port}" for port in self.ports)

    def lead_to(self, ports: Sequence[int]) -> None:
        """Names the ports of the nodes themselves."""
        self._targets[:] = ports

    def cut(self, name: str) -> None:
        """Cuts somebody off, for as long as ``mend`` is not called."""
        self._loop.call_soon_threadsafe(self._gate(name).clear)

    def mend(self, name: str) -> None:
        self._loop.call_soon_threadsafe(self._gate(name).set)

    def _gate(self, name: str) -> asyncio.Event:
        gate = self._there.get(name)
        if gate is None:
            gate = asyncio.Event()
            gate.set()
            gate = self._there.setdefault(name, gate)
        return gate

    async def _listen(self, nodes: int) -> None:
        for number in range(nodes):
            self._servers.append(await asyncio.start_server(self._accepting(number), _HOST, 0))

    def _accepting(self, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._connect(node, reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        return accept

    async def _connect(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        owner = owner_of(writer.get_extra_info("peername")[1], self.ports[node], self._owners())
        gate = self._gate(owner or "")
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(writer.close)
            await gate.wait()
            try:
                answers, asking = await asyncio.open_connection(_HOST, self._targets[node])
            except OSError:  # the node is away, and so is the connection
                return
            stack.callback(asking.close)
            passing = [self._loop.create_task(_pass_on(*way, gate)) for way in ((reader, asking), (answers, writer))]
            try:
                await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in passing:
                    one.cancel()
                await asyncio.gather(*passing, return_exceptions=True)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _call(self, work: Coroutine[object, object, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    """Passes on what comes, and that nothing will come any more, while the network is there."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            await gate.wait()
            writer.write(data)
            await writer.drain()
    await gate.wait()


def owner_of(port: int, remote_port: int, owners: Mapping[int, str]) -> str | None:
    """Who has the connection from one local port to another; ``None`` when it is none of them.

    :param owners: names by process id.
    """
    wanted = _sockets(port, remote_port)
    for process, name in owners.items():
        folder = f"{_PROC}/{process}/fd"
        with contextlib.suppress(OSError):  # it has ended
            for descriptor in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if os.readlink(f"{folder}/{descriptor}") in wanted:
                        return name
    return None


def _sockets(port: int, remote_port: int) -> set[str]:
    """The sockets with these ports, as they are called among the descriptors of a process."""
    ends = (f":{port:04X}", f":{remote_port:04X}")
    found = set()
    for table in ("tcp", "tcp6"):  # Java's are of the latter kind
        for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[_LOCAL].endswith(ends[0]) and fields[_REMOTE].endswith(ends[1]):
                found.add(f"socket:[{fields[_INODE]}]")
    return found
