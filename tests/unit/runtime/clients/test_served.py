"""What a client raises while it serves callbacks can be caught, whatever it is."""

from __future__ import annotations

import ctypes

import pytest
from confluent_kafka import KafkaError, KafkaException

from pykstreams.runtime.clients.served import served


def raise_what_is_no_exception(value: object) -> None:
    """As an extension does that hands CPython a value which is none."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.py_object, ctypes.py_object, ctypes.c_void_p], None
    for taken_over in (type(value), value):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(taken_over))
    restore(type(value), value, None)


def test_result_of_a_call_is_given_through() -> None:
    assert served(lambda: 5) == 5


def test_bare_error_of_the_client_becomes_an_exception() -> None:
    fenced = KafkaError(KafkaError._FENCED, "fenced by a newer instance", True)

    with pytest.raises(KafkaException) as raised:
        served(lambda: raise_what_is_no_exception(fenced))

    assert raised.value.args[0] is fenced
    assert raised.value.__context__ is None


def test_call_that_returned_nothing_at_all_has_broken_the_client() -> None:
    def flush() -> None:
        raise SystemError("<method 'flush' of 'cimpl.Producer' objects> returned NULL without setting an exception")

    with pytest.raises(KafkaException) as raised:
        served(flush)

    assert raised.value.args[0].fatal()
    assert "flush" in raised.value.args[0].str()


@pytest.mark.parametrize("error", [ValueError("of a callback"), KafkaException(KafkaError(KafkaError._STATE))])
def test_exception_is_raised_as_it_is(error: Exception) -> None:
    def call() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        served(call)

    assert raised.value is error
