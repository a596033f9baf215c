"""The network between workers and brokers: a proxy before each node, which can hold up what one worker sends and gets.

A worker that is cut off keeps its connections, as by packets that are lost: nothing passes, nobody is told, and what
was on its way arrives when the network is back. New connections wait, too.

Whose a connection is tells ``/proc``, so there is no such network but on Linux. Connections that come together are
looked up together: after a restart of brokers there are hundreds, each of which waits for its answer, and gives up and
comes again if that takes seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

_CHUNK = 1 << 16
_START_S = 10.0
_HOST = "127.0.0.1"
_PROC = Path("/proc")
_TOGETHER_S = 0.02
"""For how long connections are collected that are looked up together."""

_Ends: TypeAlias = tuple[int, int]
"""The local and the remote port of a connection."""

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
        self._asked: dict[_Ends, asyncio.Future[str | None]] = {}

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
        owner = await self._owner((writer.get_extra_info("peername")[1], self.ports[node]))
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

    async def _owner(self, ends: _Ends) -> str | None:
        if not self._asked:
            self._loop.call_later(_TOGETHER_S, self._look_up)
        found: asyncio.Future[str | None] = self._loop.create_future()
        self._asked[ends] = found
        return await found

    def _look_up(self) -> None:
        asked, self._asked = self._asked, {}
        owners = owners_of(asked, self._owners())
        for ends, future in asked.items():
            if not future.done():
                future.set_result(owners.get(ends))

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


def owners_of(connections: Collection[_Ends], owners: Mapping[int, str]) -> dict[_Ends, str]:
    """Who has each of some connections, as far as it is one of these.

    :param connections: their local and remote ports, as their owners see them.
    :param owners: names by process id.
    """
    wanted = _sockets(connections)
    found: dict[_Ends, str] = {}
    for process, name in owners.items():
        folder = f"{_PROC}/{process}/fd"
        with contextlib.suppress(OSError):  # it has ended
            for descriptor in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if ends := wanted.get(os.readlink(f"{folder}/{descriptor}")):
                        found[ends] = name
    return found


def _sockets(connections: Collection[_Ends]) -> dict[str, _Ends]:
    """The sockets with these ports, as they are called among the descriptors of a process."""
    wanted = {(f"{port:04X}", f"{remote:04X}"): (port, remote) for port, remote in connections}
    found: dict[str, _Ends] = {}
    for table in ("tcp", "tcp6"):  # Java's are of the latter kind
        for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            ends = wanted.get((fields[_LOCAL].rpartition(":")[2], fields[_REMOTE].rpartition(":")[2]))
            if ends is not None:
                found[f"socket:[{fields[_INODE]}]"] = ends
    return found
