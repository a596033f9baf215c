"""The layout of the tree: packages are listed, links and guards hold, every module has one name."""

import configparser
import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOMES = {"pykstreams": "pykstreams", "pykstreams.processors": "processors", "pykstreams.serdes": "serdes"}
"""Package to folder; what lies below a folder belongs to its package."""

GUARDED = ["processors", "serdes"]


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def source_folders() -> dict[str, Path]:
    """Every folder with modules, by the package that it must be; links are not followed."""
    found = {}
    for package, home in HOMES.items():
        for folder, names, files in os.walk(ROOT / home, followlinks=False):
            names[:] = [name for name in names if name != "__pycache__"]
            if any(file.endswith(".py") for file in files):
                below = Path(folder).relative_to(ROOT / home).parts
                found[".".join([package, *below])] = Path(folder)
    return found


def test_packages_of_setup_cfg_are_the_folders() -> None:
    listed = setup_cfg()["options"]["packages"].split()

    assert listed == sorted(source_folders())


def test_folders_of_setup_cfg_are_the_homes() -> None:
    lines = setup_cfg()["options"]["package_dir"].strip().splitlines()

    assert dict(line.split(" = ") for line in lines) == HOMES


def test_every_folder_of_the_package_has_an_init_module() -> None:
    without = [package for package, folder in source_folders().items() if not (folder / "__init__.py").exists()]

    assert without == []


@pytest.mark.parametrize("name", GUARDED)
def test_link_in_the_package_is_relative_and_leads_to_the_folder(name: str) -> None:
    link = ROOT / "pykstreams" / name

    assert link.is_symlink(), f"{link} is no link; git creates links only where core.symlinks is true"
    assert os.readlink(link) == f"../{name}"


@pytest.mark.parametrize("name", GUARDED)
def test_guarded_folder_cannot_be_imported_by_its_own_name(name: str) -> None:
    with pytest.raises(ImportError) as raised:
        importlib.import_module(name)

    assert str(raised.value) == f"'{name}' is not importable; import pykstreams.{name} instead"
    assert name not in sys.modules


@pytest.mark.parametrize("name", GUARDED)
def test_guard_holds_for_a_script_that_starts_in_the_root(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 1
    assert f"ImportError: '{name}' is not importable; import pykstreams.{name} instead" in done.stderr


@pytest.mark.parametrize("name", GUARDED)
def test_guarded_package_is_loaded_from_its_folder(name: str) -> None:
    package = importlib.import_module(f"pykstreams.{name}")
    assert package.__file__ is not None

    assert Path(package.__file__).resolve() == ROOT / name / "__init__.py"


@pytest.mark.parametrize("name", GUARDED)
def test_guarded_folder_shadows_no_module_of_the_standard_library(name: str) -> None:
    """A script that starts in the folder has it first on its path."""
    modules = {path.stem for path in (ROOT / name).glob("*.py")} - {"__init__"}

    assert modules & sys.stdlib_module_names == set()


def test_tests_are_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_package_is_marked_as_typed() -> None:
    assert (ROOT / "pykstreams/py.typed").read_text() == ""
    assert setup_cfg()["options.package_data"]["pykstreams"] == "py.typed"


def test_entry_points_lead_to_modules_that_exist() -> None:
    lines = [line for value in setup_cfg()["options.entry_points"].values() for line in value.strip().splitlines()]
    modules = [line.split(" = ")[1].split(":")[0] for line in lines]

    assert modules
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []
