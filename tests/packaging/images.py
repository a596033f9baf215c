"""Images for tests of packages: Python with the wheels that pip takes there, since nothing can be fetched inside."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
"""The builds of wheels that run on Debian 12 and newer."""


def said(*command: str, folder: Path | None = None) -> str:
    """Runs a command, which must go well, and returns what it printed."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


def image_with_wheels(version: str, wheel: Path, folder: Path) -> str:
    """Makes the image of one Python with a wheel and all that its users may install, and returns its name."""
    said(str(ROOT / "scripts/python/build-image.sh"), f"python:{version}-slim")
    wheels = folder / "wheels"
    platforms = [option for name in PLATFORMS for option in ("--platform", f"{name}_{platform.machine()}")]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(wheels), "--only-binary", ":all:"]
    said(*command, "--python-version", version, *platforms, f"{wheel}[http,sql,protobuf]", "pytest>=8")
    shutil.copy(wheel, wheels)
    (folder / "Dockerfile").write_text(
        f"FROM python:{version}-slim\nCOPY wheels /wheels\nENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels\n"
    )
    name = f"pykstreams.packages:{version}"
    said("docker", "build", "--quiet", "--tag", name, str(folder))
    return name
