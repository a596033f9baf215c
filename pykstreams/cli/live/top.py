"""``pykstreams top``: a running application in the terminal, from the facts of its live page."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from pykstreams.cli.live.facts import InstanceFacts
from pykstreams.cli.live.server import Server
from pykstreams.core.errors import ClusterError, ConfigError

if TYPE_CHECKING:
    from pykstreams.cli.live.frame import Moment


def _finite(context: click.Context, parameter: click.Parameter, seconds: float) -> float:
    """Refuses what a range of numbers lets through and no clock can wait for."""
    if not math.isfinite(seconds):
        raise click.BadParameter(f"{seconds} is no time; write seconds, for instance 2")
    return seconds


@click.command()
@click.option("--url", metavar="http://HOST:PORT", required=True, help="An instance of the running application.")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(min=0.2),
    callback=_finite,
    default=2.0,
    show_default=True,
    help="From one picture to the next, and the time of its rates.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Print one picture, with the rates of one interval, and end. Into a pipe or a file whole, however wide it is.",
)
@click.option("--token-file", metavar="FILE", help="A file with the token of the application.")
@click.option("--tls-ca", metavar="FILE", help="What its certificate is checked with.")
def top(url: str, interval: float, once: bool, token_file: str | None, tls_ca: str | None) -> None:
    """Watch an application that runs with --http: rates, lag and lost records of all its instances.

    The same facts as on its live page, in the terminal, until Ctrl-C. Needs the extra top.

    \b
        pykstreams top --url http://localhost:8080
        pykstreams top --url http://localhost:8080 --once
    """
    try:
        from rich.console import Console
        from rich.live import Live

        from pykstreams.cli.live.frame import Moment, frame, whole_width
    except ModuleNotFoundError as error:
        raise ConfigError(f"'top' needs {error.name}, which is not installed; pip install 'pykstreams[top]'") from error

    server, waiting = Server(url, token_file, tls_ca), threading.Event()
    moment = Moment(asked(server))
    if once:
        waiting.wait(interval)
        picture, console = frame(Moment(asked(server), moment.instances)), Console()
        if not console.is_terminal:
            console.width = whole_width(console, picture)
        console.print(picture)
        return
    try:
        with Live(frame(moment), console=Console(), screen=True, auto_refresh=False) as shown:
            while not waiting.wait(interval):
                moment, problem = _next(server, moment)
                shown.update(frame(moment, problem), refresh=True)
    except KeyboardInterrupt:
        return


def _next(server: Server, moment: Moment) -> tuple[Moment, str]:
    """The facts of now; the last ones, with the reason, where there are none for now."""
    from pykstreams.cli.live.frame import Moment

    try:
        return Moment(asked(server), moment.instances), ""
    except ClusterError as error:
        return moment, str(error)


def asked(server: Server) -> Sequence[InstanceFacts]:
    """Returns the facts of all instances, as they are now."""
    return cast("Sequence[InstanceFacts]", server.get("/live.json", {"instances": "all"}, "instances")["instances"])
