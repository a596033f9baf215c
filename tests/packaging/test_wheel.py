"""What a wheel holds: every module of every package once, with or without the links in the tree."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import Released
from tests.packaging.source_tree import LINKS, copy_tree, files_of_packages


def expected_content() -> list[str]:
    """The files of the tree by their place in the wheel."""
    found = {"pykstreams/py.typed"}
    for path in files_of_packages():
        prefix = Path() if path.parts[0] == "pykstreams" else Path("pykstreams")
        found.add(str(prefix / path))
    return sorted(found)


def content_of(wheel: Path) -> list[str]:
    return sorted(name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name)


@pytest.mark.slow
def test_wheel_of_a_tree_without_links_holds_every_module_once(tmp_path: Path) -> None:
    source = tmp_path / "source"
    copy_tree(source)
    for link in LINKS:
        (source / link).unlink()
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(source)], check=True)
    [wheel] = tmp_path.glob("pykstreams-*.whl")

    assert expected_content() == content_of(wheel)


@pytest.mark.slow
def test_wheel_of_the_source_distribution_holds_every_module_once(released: Released) -> None:
    content = content_of(released.wheel)

    assert expected_content() == content
    assert any(name.startswith("pykstreams/processors/") for name in content)
    assert any(name.startswith("pykstreams/serdes/") for name in content)
