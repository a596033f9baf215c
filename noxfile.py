"""Checks for each supported Python: ``nox`` for all, ``nox -s tests-3.12`` for one."""

import nox

PYTHONS = ("3.11", "3.12", "3.13")
nox.options.sessions = ("lint", "types", "tests")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests that this machine allows."""
    session.install("--editable", ".[protobuf,test,dev]")
    session.run("pytest", "-n", "auto", "--maxprocesses", "4", "--dist", "loadgroup", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and the layer contract."""
    session.install("--editable", ".[protobuf,test,dev]")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """The package with mypy, and user code with pyright besides."""
    session.install("--editable", ".[protobuf,test,dev]", "--config-settings", "editable_mode=compat")
    session.run("mypy")
    session.run("pyright", "tests/typing")


@nox.session
def docs(session: nox.Session) -> None:
    """The examples in docstrings and pages."""
    session.install("--editable", ".[protobuf,test]")
    session.run(
        "pytest", "--doctest-modules", "pykstreams/core", "pykstreams/topology", "tests/unit/serdes", *session.posargs
    )


@nox.session
def nightly(session: nox.Session) -> None:
    """Ten thousand schedules of each kind of join, for which ``tests`` draws five hundred; a year of flights."""
    session.install("--editable", ".[test]")
    session.run("pytest", "--timeout", "0", "tests/spark/test_flights.py", *session.posargs, env={"FLIGHTS": "year"})
    session.run("pytest", "--timeout", "0", "tests/simulation", *session.posargs, env={"SIMULATION_SCHEDULES": "10000"})


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Ratios to a bare loop and to Kafka Streams."""
    session.install("--editable", ".[test]")
    session.run("python", "-m", "benchmarks", *session.posargs)
