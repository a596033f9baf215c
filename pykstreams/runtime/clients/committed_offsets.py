"""Commits and reads offsets with metadata that is right at the byte, by calling librdkafka itself.

``confluent_kafka`` takes metadata for a C string, and librdkafka gives it a length: what it commits has a NUL more, and
what it reads goes on behind the end (docs/decisions/0019-offset-metadata.md). Here the same functions of the same
library are called, on the same client, with exact lengths.

Invariant: no function is called on a client before the place of its handle was checked; where that cannot be done,
``StreamsError`` says so, and nothing was read or written.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Collection, Iterator
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any, TypeAlias

import confluent_kafka
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, cimpl

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import Offsets


def commit(consumer: Consumer, offsets: Offsets, timeout_s: float) -> None:
    """Commits as a member of the group, and waits; ``KafkaException`` when an offset was not committed in time."""
    library, handle = _library(), handle_of(consumer)
    with library.lists.of(offsets) as wanted, _queue(library, handle) as answers:
        _raise_for(library.commit_queue(handle, wanted, answers, None, None))
        event = library.queue_poll(answers, _milliseconds(timeout_s))
        if not event:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer to a commit for {timeout_s:g} s"))
        try:
            _raise_for(library.event_error(event))
            for done in _elements(library.event_partitions(event)):
                _raise_for(done.err)
        finally:
            library.event_destroy(event)


def committed(consumer: Consumer, partitions: Collection[TopicPartition], timeout_s: float) -> Offsets:
    """Reads what the group has committed, without the partitions of which it has committed nothing.

    ``KafkaException`` when the answer for a partition did not come in time.
    """
    library, handle = _library(), handle_of(consumer)
    found: dict[TopicPartition, tuple[int, str]] = {}
    with library.lists.of(dict.fromkeys(partitions, (OFFSET_INVALID, ""))) as asked:
        _raise_for(library.committed(handle, asked, _milliseconds(timeout_s)))
        for one in _elements(asked):
            _raise_for(one.err)
            if one.offset >= 0:
                # whoever committed it: it is text by the protocol, but the brokers do not look
                text = ctypes.string_at(one.metadata, one.metadata_size).decode(errors="replace")
                found[TopicPartition(one.topic.decode(), one.partition)] = (one.offset, text)
    return found


def send_to_transaction(producer: Producer, offsets: Offsets, group_metadata: bytes, timeout_s: float) -> None:
    """Makes offsets part of the producer's transaction; ``KafkaException`` as ``confluent_kafka`` raises it.

    :param group_metadata: as ``Consumer.consumer_group_metadata`` gives it.
    """
    library, handle = _library(), handle_of(producer)
    with library.lists.of(offsets) as wanted, _group(library, group_metadata) as group:
        error = library.send_offsets_to_transaction(handle, wanted, group, _milliseconds(timeout_s))
        if error:
            raise KafkaException(library.errors.taken(error))


def handle_of(client: Consumer | Producer) -> int:
    """The address of librdkafka's handle behind a client; ``RuntimeError`` when it is closed."""
    library = _library()
    if not isinstance(client, cimpl.Consumer | cimpl.Producer):
        raise _refusal(f"a client is {type(client)!r}, and no Consumer or Producer of confluent_kafka")
    handle = _words(client)[0]
    if handle is None:
        raise RuntimeError(f"{client!r} is closed")
    if library.opaque(handle) != id(client):
        raise _refusal(f"{client!r} does not begin with its handle")
    return handle


class _Partition(ctypes.Structure):
    """``rd_kafka_topic_partition_t``, which is public."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_void_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("err", c_int),
        ("private", c_void_p),
    )


class _Partitions(ctypes.Structure):
    """``rd_kafka_topic_partition_list_t``."""

    _fields_ = (("count", c_int), ("size", c_int), ("elements", POINTER(_Partition)))


_Function: TypeAlias = Callable[..., Any]
_Find: TypeAlias = Callable[..., _Function]
"""(name without ``rd_kafka_``, type of the result, types of the arguments): a function of the library."""


class _Library:
    """The functions that are needed, with their types: here those of clients, queues and groups."""

    def __init__(self, file: ctypes.CDLL) -> None:
        def function(name: str, result: Any, *arguments: Any) -> _Function:
            found: Any = getattr(file, f"rd_kafka_{name}")
            found.restype, found.argtypes = result, arguments
            return found  # type: ignore[no-any-return]

        self.errors = _Errors(function)
        self.lists = _Lists(function)
        partitions = POINTER(_Partitions)
        self.opaque = function("opaque", c_void_p, c_void_p)
        self.new_queue = function("queue_new", c_void_p, c_void_p)
        self.queue_poll = function("queue_poll", c_void_p, c_void_p, c_int)
        self.destroy_queue = function("queue_destroy", None, c_void_p)
        self.event_error = function("event_error", c_int, c_void_p)
        self.event_partitions = function("event_topic_partition_list", partitions, c_void_p)
        self.event_destroy = function("event_destroy", None, c_void_p)
        self.commit_queue = function("commit_queue", c_int, c_void_p, partitions, c_void_p, c_void_p, c_void_p)
        self.committed = function("committed", c_int, c_void_p, partitions, c_int)
        self.read_group = function("consumer_group_metadata_read", c_void_p, POINTER(c_void_p), c_char_p, c_size_t)
        self.destroy_group = function("consumer_group_metadata_destroy", None, c_void_p)
        self.send_offsets_to_transaction = function(
            "send_offsets_to_transaction", c_void_p, c_void_p, partitions, c_void_p, c_int
        )


class _Errors:
    """The functions of errors."""

    def __init__(self, function: _Find) -> None:
        self._code = function("error_code", c_int, c_void_p)
        self._text = function("error_string", c_char_p, c_void_p)
        self._is_fatal = function("error_is_fatal", c_int, c_void_p)
        self._is_retriable = function("error_is_retriable", c_int, c_void_p)
        self._requires_abort = function("error_txn_requires_abort", c_int, c_void_p)
        self._destroy = function("error_destroy", None, c_void_p)

    def taken(self, error: int) -> KafkaError:
        """An error of librdkafka as one of ``confluent_kafka``; the former is gone then."""
        found = KafkaError(
            self._code(error),
            self._text(error).decode(),
            fatal=bool(self._is_fatal(error)),
            retriable=bool(self._is_retriable(error)),
            txn_requires_abort=bool(self._requires_abort(error)),
        )
        self._destroy(error)
        return found


class _Lists:
    """The functions of lists of partitions."""

    def __init__(self, function: _Find) -> None:
        partitions = POINTER(_Partitions)
        self._memory = function("mem_malloc", c_void_p, c_void_p, c_size_t)
        self._new = function("topic_partition_list_new", partitions, c_int)
        self._add = function("topic_partition_list_add", POINTER(_Partition), partitions, c_char_p, c_int32)
        self._destroy = function("topic_partition_list_destroy", None, partitions)

    @contextlib.contextmanager
    def of(self, offsets: Offsets) -> Iterator[Any]:
        """Makes a list of offsets with their metadata, for as long as it is used."""
        made = self._new(len(offsets))
        try:
            for place, (offset, text) in offsets.items():
                one = self._add(made, place.topic.encode(), place.partition).contents
                one.offset = offset
                if metadata := text.encode():
                    one.metadata = self._memory(None, len(metadata))  # freed together with the list
                    one.metadata_size = len(metadata)
                    ctypes.memmove(one.metadata, metadata, len(metadata))
            yield made
        finally:
            self._destroy(made)


@functools.cache
def _library() -> _Library:
    """The library that ``confluent_kafka`` has loaded, once it is sure where clients keep their handles.

    In its C structure the handle comes first, and then the callbacks for errors, throttling and statistics. So the
    callbacks of a client that is made for this tell whether it is still so, without following any address.
    """
    try:
        library = _Library(_loaded())
    except (OSError, AttributeError) as error:
        raise _refusal(f"the functions of librdkafka are not found ({error})") from error

    def on_error(_: object) -> None: ...
    def on_throttle(_: object) -> None: ...
    def on_statistics(_: object) -> None: ...

    callbacks = {"error_cb": on_error, "throttle_cb": on_throttle, "stats_cb": on_statistics}
    probe = Producer({"bootstrap.servers": "", "log_level": 0, **callbacks})
    handle, *found = _words(probe)
    if found != [id(callback) for callback in callbacks.values()] or library.opaque(handle) != id(probe):
        raise _refusal("its clients do not begin with their handle and callbacks")
    return library


def _loaded() -> ctypes.CDLL:
    if sys.platform == "win32":
        folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
        name = next((str(path) for path in folder.glob("librdkafka-*.dll")), "librdkafka.dll")
        module = ctypes.WinDLL("kernel32").GetModuleHandleW
        module.restype = c_void_p
        return ctypes.CDLL(name, handle=module(name))
    return ctypes.CDLL(cimpl.__file__)  # what it is linked to is searched, too


_WORDS = c_void_p * 4


def _words(client: Consumer | Producer) -> list[int | None]:
    """The first words of a client's C structure."""
    at = object.__basicsize__  # what comes before is Python's own
    if sys.implementation.name != "cpython" or type(client).__basicsize__ < at + ctypes.sizeof(_WORDS):
        raise _refusal(f"{type(client)!r} is not laid out as a client of C is")
    return list(_WORDS.from_address(id(client) + at))


def _refusal(why: str) -> StreamsError:
    return StreamsError(
        "metadata of offsets cannot be committed and read as Kafka Streams does, with confluent_kafka "
        f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]}) on {sys.implementation.name}: "
        f"{why}; use CPython, clients of confluent_kafka or subclasses of them, and its releases 2.11 to 2.16"
    )


@contextlib.contextmanager
def _queue(library: _Library, handle: int) -> Iterator[int]:
    made = library.new_queue(handle)
    try:
        yield made
    finally:
        library.destroy_queue(made)


@contextlib.contextmanager
def _group(library: _Library, group_metadata: bytes) -> Iterator[c_void_p]:
    made = c_void_p()
    if error := library.read_group(ctypes.byref(made), group_metadata, len(group_metadata)):
        raise KafkaException(library.errors.taken(error))
    try:
        yield made
    finally:
        library.destroy_group(made)


def _elements(partitions: Any) -> list[_Partition]:
    return partitions.contents.elements[: partitions.contents.count]  # type: ignore[no-any-return]


def _raise_for(code: int) -> None:
    if code:
        raise KafkaException(KafkaError(code))


def _milliseconds(timeout_s: float) -> int:
    return max(0, int(timeout_s * 1000))
