"""The archive that is sent to executors on other machines: code that Python imports, as it is named here."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pykstreams.bulk.engines.code_archive import CodeArchive, code_archive
from pykstreams.core.errors import ConfigError


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a script leaves its folder in the path; processes that are spawned later would find its ``json.py``."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def names(code: CodeArchive) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(code.content)) as archive:
        return archive.namelist()


def test_a_script_is_a_module_of_the_archive(tmp_path: Path) -> None:
    script = tmp_path / "shipped_shop.py"
    script.write_text("def build(): ...")

    code = code_archive(f"{script}:build")

    assert "shipped_shop:build" == code.named
    (tmp_path / code.name).write_bytes(code.content)
    importing = f"import sys; sys.path.insert(0, {str(tmp_path / code.name)!r}); import shipped_shop"
    subprocess.run([sys.executable, "-c", importing], check=True, cwd="/")


def test_a_script_that_is_called_like_a_module_of_python_has_a_name_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "json.py"
    script.write_text("def build(): ...")

    code = code_archive(str(script))

    assert ["pykstreams_script_json.py"] == names(code)
    assert "pykstreams_script_json" == code.named


def test_a_package_is_sent_with_its_data_and_without_compiled_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shipped_package"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/order.avsc", "inner/__pycache__/order.pyc"):
        (package / name).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))

    code = code_archive("shipped_package.inner:build")

    assert "shipped_package.inner:build" == code.named
    expected = ["__init__.py", "inner/__init__.py", "inner/order.avsc"]
    assert [f"shipped_package/{name}" for name in expected] == names(code)


def test_equal_code_has_one_name_and_other_code_another(tmp_path: Path) -> None:
    script, module = tmp_path / "shipped_twice.py", tmp_path / "more.py"
    script.write_text("")
    module.write_text("one = 1")
    once, twice = code_archive(str(script), [str(module)]), code_archive(str(script), [str(module)])
    module.write_text("one = 2")

    assert once == twice
    assert once.name != code_archive(str(script), [str(module)]).name


def test_files_that_would_have_one_name_or_are_not_there_are_refused(tmp_path: Path) -> None:
    script, other = tmp_path / "shipped_again.py", tmp_path / "other" / "shipped_again.py"
    other.parent.mkdir()
    for path in (script, other):
        path.write_text("")

    assert ["shipped_again.py"] == names(code_archive(str(script), [str(script)]))
    with pytest.raises(ConfigError, match=r"would both be 'shipped_again.py' on the executors"):
        code_archive(str(script), [str(other)])
    with pytest.raises(ConfigError, match=r"there is no file or folder '.*missing.py'"):
        code_archive(str(script), [str(tmp_path / "missing.py")])
