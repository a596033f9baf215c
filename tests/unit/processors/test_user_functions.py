"""How functions of users are named in messages."""

from __future__ import annotations

from functools import partial

from pykstreams.processors.user_functions import describe_function


class Callable:
    def __call__(self) -> None: ...

    def __repr__(self) -> str:
        return "<the callable>"


def test_function_is_named_by_module_name_and_line() -> None:
    def mapper() -> None: ...

    text = describe_function(mapper)

    assert text.startswith(f"{__name__}.test_function_is_named_by_module_name_and_line.<locals>.mapper (line ")


def test_built_in_function_has_no_line() -> None:
    assert describe_function(len) == "builtins.len"


def test_partial_is_named_by_its_function() -> None:
    assert describe_function(partial(int, base=2)) == "partial of builtins.int"


def test_callable_object_is_named_by_its_repr() -> None:
    assert describe_function(Callable()) == "<the callable>"
