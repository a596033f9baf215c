"""Which line of a traceback is told: the user's, not that of a library that it called."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pykstreams import Serdes
from pykstreams.core.user_code.frames import user_frame


def place(function: Callable[[], object]) -> str | None:
    """Where the exception of a function came from: the function's name in the traceback."""
    with pytest.raises(Exception) as raised:
        function()
    assert raised.value.__traceback__ is not None
    error = raised.value.with_traceback(raised.value.__traceback__.tb_next)  # without the frame of this function
    found = user_frame(error)
    return None if found is None else found[0].f_code.co_name


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes modules among the installed libraries of some environment."""

    def install(**modules: str) -> None:
        folder = tmp_path / "venv" / "lib" / "site-packages"
        folder.mkdir(parents=True)
        monkeypatch.syspath_prepend(folder)
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)

    return install


def test_the_users_function_is_told_where_pythons_library_raised() -> None:
    def parse() -> object:
        return json.loads("{")

    assert place(parse) == "parse"


def test_the_users_function_is_told_where_an_installed_library_raised(installed: Callable[..., None]) -> None:
    installed(checker_of_models="def check(value):\n    raise ValueError(value)\n")
    checker_of_models = importlib.import_module("checker_of_models")

    def model() -> object:
        return checker_of_models.check(1)

    assert place(model) == "model"


def test_the_users_function_is_told_where_a_library_calls_it_and_is_called_by_it(
    installed: Callable[..., None],
) -> None:
    installed(decorator_of_tries="def tried(f):\n    def again():\n        return f()\n    return again\n")
    decorator_of_tries = importlib.import_module("decorator_of_tries")

    def parse() -> object:
        return json.loads("{")

    assert place(decorator_of_tries.tried(parse)) == "parse"


def test_the_users_package_may_be_installed_itself(installed: Callable[..., None]) -> None:
    installed(shop_installed="import json\ndef read():\n    return parse()\ndef parse():\n    return json.loads('{')\n")
    shop_installed = importlib.import_module("shop_installed")

    assert place(shop_installed.read) == "parse"


def test_a_library_that_is_called_directly_is_told() -> None:
    error = ValueError()
    try:
        json.loads("{")
    except ValueError as raised:
        error = raised
    assert error.__traceback__ is not None

    found = user_frame(error.with_traceback(error.__traceback__.tb_next))

    assert found is not None
    assert found[0].f_globals["__name__"] == "json.decoder"


def test_what_only_pykstreams_has_raised_is_nobodys() -> None:
    serialize = Serdes.string().serializer.serialize
    error = ValueError()
    try:
        serialize("topic", 5)  # type: ignore[arg-type]
    except Exception as raised:
        error = raised  # type: ignore[assignment]
    assert error.__traceback__ is not None

    assert user_frame(error.with_traceback(error.__traceback__.tb_next)) is None
