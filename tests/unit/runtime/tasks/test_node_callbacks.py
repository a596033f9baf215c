"""What nodes have called when their task starts and when it closes."""

from __future__ import annotations

from pykstreams.runtime.tasks.node_callbacks import NodeCallbacks


def first() -> None: ...


def second() -> None: ...


def test_callbacks_come_by_node_in_the_order_of_nodes_and_then_of_asking() -> None:
    callbacks = NodeCallbacks()
    callbacks.on_init("BELOW", first)
    callbacks.on_init("ABOVE", second)
    callbacks.on_init("BELOW", second)

    assert callbacks.at_init(["ABOVE", "BETWEEN", "BELOW"]) == [("ABOVE", [second]), ("BELOW", [first, second])]


def test_those_of_the_start_and_those_of_the_close_are_apart() -> None:
    callbacks = NodeCallbacks()
    callbacks.on_init("NODE", first)
    callbacks.on_close("NODE", second)

    assert callbacks.at_init(["NODE"]) == [("NODE", [first])]
    assert callbacks.at_close(["NODE"]) == [("NODE", [second])]


def test_callback_that_another_one_of_its_node_adds_is_called_as_well() -> None:
    callbacks = NodeCallbacks()
    called = []

    def adds() -> None:
        called.append("adds")
        callbacks.on_init("NODE", lambda: called.append("added"))

    callbacks.on_init("NODE", adds)
    for _, of_node in callbacks.at_init(["NODE"]):
        for callback in of_node:
            callback()

    assert called == ["adds", "added"]


def test_cleared_callbacks_are_not_called_again() -> None:
    callbacks = NodeCallbacks()
    callbacks.on_init("NODE", first)
    callbacks.on_close("NODE", second)

    callbacks.clear()

    assert callbacks.at_init(["NODE"]) == callbacks.at_close(["NODE"]) == []
