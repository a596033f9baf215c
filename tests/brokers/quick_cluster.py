"""An embedded cluster whose groups do not wait three seconds for their first members.

Brokers wait so long for others to join (``group.initial.rebalance.delay.ms``); librdkafka's mock brokers do, too, and
only its C interface can tell them not to. Where that cannot be reached, tests take longer and mean the same.

Invariant: but for that delay, this is an ``EmbeddedCluster``.
"""

from __future__ import annotations

import ctypes
from contextlib import ExitStack

from confluent_kafka import Producer, cimpl

from pykstreams.testing import EmbeddedCluster

SHORT_SESSION = {"main.consumer.session.timeout.ms": 2000, "main.consumer.heartbeat.interval.ms": 200}
"""For a worker that joins a group which another has just left: for the rest of the session, less a second, mock brokers
wait for that one."""

_PRODUCER = 0
_SETTINGS = {b"test.mock.num.brokers": b"1", b"log_level": b"4"}
_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_SIGNATURES = {
    "rd_kafka_conf_new": (_POINTER, []),
    "rd_kafka_conf_set": (ctypes.c_int, [_POINTER, _TEXT, _TEXT, _TEXT, ctypes.c_size_t]),
    "rd_kafka_new": (_POINTER, [ctypes.c_int, _POINTER, _TEXT, ctypes.c_size_t]),
    "rd_kafka_destroy": (None, [_POINTER]),
    "rd_kafka_handle_mock_cluster": (_POINTER, [_POINTER]),
    "rd_kafka_mock_cluster_bootstraps": (_TEXT, [_POINTER]),
    "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [_POINTER, ctypes.c_int32]),
}


def _interface() -> ctypes.CDLL | None:
    """The functions of librdkafka, found through the client that is linked with it; ``None`` where that hides them."""
    library = ctypes.CDLL(cimpl.__file__)
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError:
        return None
    return library


_LIBRARY = _interface()


class QuickCluster(EmbeddedCluster):
    """Hosted by a client of the C interface; another client asks it for topics."""

    def __init__(self, library: ctypes.CDLL) -> None:
        settings = library.rd_kafka_conf_new()
        for name, value in _SETTINGS.items():
            assert library.rd_kafka_conf_set(settings, name, value, None, 0) == 0
        self._library = library
        self._brokers = library.rd_kafka_new(_PRODUCER, settings, None, 0)
        cluster = library.rd_kafka_handle_mock_cluster(self._brokers)
        library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0)
        self.bootstrap_servers = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        self._host = Producer({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        self._close_topics = ExitStack()

    def close(self) -> None:
        if self._host is not None:
            super().close()
            self._library.rd_kafka_destroy(self._brokers)


def quick_cluster() -> EmbeddedCluster:
    """A cluster for one test."""
    return EmbeddedCluster() if _LIBRARY is None else QuickCluster(_LIBRARY)
