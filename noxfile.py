"""Checks for each supported Python: ``nox`` for all, ``nox -s tests-3.12`` for one."""

import shutil
from pathlib import Path

import nox

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
nox.options.sessions = ("lint", "types", "tests")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests that this machine allows."""
    session.install("--editable", ".[protobuf,dev]")
    session.run("pytest", "-n", "auto", "--maxprocesses", "4", "--dist", "loadgroup", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and the layer contract."""
    session.install("--editable", ".[protobuf,dev]")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """The package with mypy, and user code with pyright besides."""
    session.install("--editable", ".[protobuf,dev]", "--config-settings", "editable_mode=compat")
    session.run("mypy")
    session.run("pyright", "tests/typing")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site, in which a warning is an error; and the examples in docstrings and pages."""
    session.install("--editable", ".[docs,protobuf,dev]")
    session.run("python", "-m", "mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
    session.run(
        "pytest",
        "--doctest-modules",
        "pykstreams/core",
        "pykstreams/topology",
        "tests/unit/serdes",
        "tests/docs",
        *session.posargs,
    )


@nox.session(python=PYTHONS)
def packages(session: nox.Session) -> None:
    """Wheel and source distribution with each Python that is installed, used from an empty folder as a newcomer does.

    nox names those that are missing. With pyenv all its Pythons are found if they are named in PYENV_VERSION, as in
    ``PYENV_VERSION=3.11:3.12:3.13``.
    """
    released = Path(session.virtualenv.location) / "released"
    shutil.rmtree(released, ignore_errors=True)
    session.install("build>=1.2", "pytest>=8")
    session.run("python", "-m", "build", "--outdir", str(released), ".", silent=True)
    for made in (*released.glob("*.whl"), *released.glob("*.tar.gz")):
        # of all that it needs, wheels: no compiler is wanted
        session.install(f"{made}[http,protobuf]", "--only-binary", ":all:", "--no-binary", "pykstreams")
        session.run("python", "tests/packaging/first_steps.py")
        session.run("python", "-m", "pip", "uninstall", "--yes", "--quiet", "pykstreams")


@nox.session
def release(session: nox.Session) -> None:
    """A release by its version: notes, files, commit and tag; with ``--dry-run`` in a copy of the repository."""
    session.install("build>=1.2", "towncrier>=24.8", "cyclonedx-bom>=6")
    session.run("python", "scripts/release.py", *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of all that the package needs; one that cannot be looked up is an error, too."""
    session.install("--editable", ".[protobuf,spark]", "pip-audit>=2.7")
    found = Path(session.create_tmp()) / "installed.txt"
    with found.open("w") as file:
        session.run("python", "-m", "pip", "freeze", "--exclude-editable", stdout=file)
    session.run(
        "pip-audit", "--strict", "--no-deps", "--disable-pip", "--requirement", str(found.absolute()), *session.posargs
    )


# An hour without an end is a hang, unless a test's own pytest.mark.timeout allows more.
NIGHTLY_PYTEST = ("pytest", "--timeout", "3600")


@nox.session
@nox.parametrize(
    "command, environment",
    [
        nox.param((*NIGHTLY_PYTEST, "-m", "nightly"), {}, id="marked"),
        # ten thousand schedules of each kind of join, for which ``tests`` draws sixty
        nox.param((*NIGHTLY_PYTEST, "tests/simulation"), {"SIMULATION_SCHEDULES": "10000"}, id="simulation"),
        nox.param(
            (*NIGHTLY_PYTEST, "tests/integration/test_foreign_key_join.py"),
            {"FOREIGN_KEY_JOIN_ROWS": "200000"},
            id="foreign-key-join",
        ),
        nox.param((*NIGHTLY_PYTEST, "tests/spark/test_flights.py"), {"FLIGHTS": "year"}, id="flights"),
        nox.param(("nox", "-s", "packages"), {}, id="packages"),
    ],
)
def nightly(session: nox.Session, command: tuple[str, ...], environment: dict[str, str]) -> None:
    """What takes too long for each change; the parts run one after another, also after one that failed."""
    session.install("--editable", ".[protobuf,dev]")
    session.run(*command, *session.posargs, env=environment)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Ratios to a bare loop and to Kafka Streams."""
    session.install("--editable", ".[dev]")
    session.run("python", "-m", "benchmarks", *session.posargs)
