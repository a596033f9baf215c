"""What a wheel holds: every module of every package once, with or without the links in the tree."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ["pykstreams", "processors", "serdes"]
FILES = ["setup.cfg", "pyproject.toml", "README.md", "LICENSE"]
LINKS = ["pykstreams/processors", "pykstreams/serdes"]


def copy_tree(target: Path) -> None:
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, target / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, target / file)


def expected_modules() -> set[str]:
    """The modules of the tree, and the layouts of messages, by their place in the wheel."""
    found = set()
    for folder in FOLDERS:
        prefix = Path() if folder == "pykstreams" else Path("pykstreams")
        for path in (
            path
            for kind in ("*.py", "*.json", "*.html", "*.css", "*.js", "*.txt")
            for path in (ROOT / folder).rglob(kind)
        ):
            relative = path.relative_to(ROOT)
            if not any((ROOT / parent).is_symlink() for parent in relative.parents):
                found.add(str(prefix / relative))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_wheel_holds_every_module_once(tmp_path: Path, links: bool) -> None:
    source = tmp_path / "source"
    copy_tree(source)
    if not links:
        for link in LINKS:
            (source / link).unlink()
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(source)], check=True)
    [wheel] = tmp_path.glob("pykstreams-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    content = [name for name in names if ".dist-info/" not in name]

    assert sorted(content) == sorted({*expected_modules(), "pykstreams/py.typed"})
    assert any(name.startswith("pykstreams/processors/") for name in content)
    assert any(name.startswith("pykstreams/serdes/") for name in content)
