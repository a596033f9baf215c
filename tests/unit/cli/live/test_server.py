"""What ``top`` and ``state --url`` make of answers that are none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykstreams.cli.app import cli
from pykstreams.cli.live.server import Server
from pykstreams.core.errors import ClusterError, ConfigError

PATIENCE_S = 20.0

Serve = Callable[[bytes], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Answers one request with some bytes, and closes the connection; returns the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    answering: list[threading.Thread] = []

    def answer(data: bytes) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(data)

    def begin(data: bytes) -> str:
        answering.append(threading.Thread(target=answer, args=(data,), daemon=True))
        answering[-1].start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    with listening:
        yield begin
        for one in answering:
            one.join(PATIENCE_S)


CUT_OFF = b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"a":'


@pytest.mark.parametrize(
    "data",
    [
        CUT_OFF,
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"a":',
        b'HTTP/1.1 503 Unavailable\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"type":',
        b"HTTP/1.1 200 OK\r\ncontent-len",
        b"garbage\r\n\r\n",
        b"",
    ],
    ids=["body", "chunk", "problem", "headers", "garbage", "nothing"],
)
def test_an_answer_that_is_cut_off_is_none_for_now(serve: Serve, data: bytes) -> None:
    url = serve(data)

    with pytest.raises(ClusterError, match=rf"^{url} was not reached: .+; is it the --http of a running worker\?$"):
        Server(url).get("/live.json", {}, "instances")


@pytest.mark.parametrize("command", [["top", "--once"], ["state", "show", "counts"]], ids=lambda words: words[0])
def test_commands_end_with_the_reason_when_an_answer_is_cut_off(serve: Serve, command: list[str]) -> None:
    result = CliRunner().invoke(cli, [*command, "--url", serve(CUT_OFF)])

    assert result.exit_code == 3
    assert "was not reached: IncompleteRead" in result.output


def answering(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize("body", [b'{"status": "UP"}', b"[1, 2]", b"<!doctype html>\n<p>hello</p>", b"\xff"])
@pytest.mark.parametrize("command", [["top", "--once"], ["state", "get", "counts", "tea"], ["state", "show", "counts"]])
def test_a_server_of_something_else_is_told_in_one_line(serve: Serve, command: list[str], body: bytes) -> None:
    result = CliRunner().invoke(cli, [*command, "--url", serve(answering(body))])

    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.endswith("it is no server of pykstreams; give the address of a --http")


@pytest.mark.parametrize("command", [["state", "get", "counts", "tea"], ["state", "show", "counts"]])
def test_a_value_that_its_serde_cannot_read_ends_commands_as_it_does_in_folders(
    serve: Serve, command: list[str]
) -> None:
    body = b'{"type":"urn:pykstreams:problem:unreadable","detail":"LongSerde() cannot read 0x00"}'
    head = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: %d\r\n\r\n" % len(body)
    result = CliRunner().invoke(cli, [*command, "--url", serve(head + body)])

    assert (result.exit_code, result.stdout) == (4, "")
    assert "LongSerde() cannot read 0x00" in result.stderr


def test_an_empty_answer_is_told_in_one_line(serve: Serve) -> None:
    url = serve(answering(b""))
    result = CliRunner().invoke(cli, ["state", "get", "counts", "tea", "--url", url])

    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.splitlines()[0].endswith(
        f"{url} was not reached: the answer is empty; is it the --http of a running worker?"
    )


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ClusterError, match=r"^http://\[::1 was not reached: Invalid IPv6 URL"):
        Server("http://[::1").get("/live.json", {}, "instances")


def test_a_token_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match=r"^the token file .*token' cannot be read: .*codec.*; name another one$"):
        Server("http://127.0.0.1:1", str(file)).get("/live.json", {}, "instances")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (" \n", "holds no token; write one into it, without spaces"),
        ("secret\nof-others\n", "holds a token with a space or the end of a line in it; write one without"),
        ("secret of", "holds a token with a space or the end of a line in it; write one without"),
        ("s\u00e9cret", "holds a token with characters that are not ASCII; write one without"),
    ],
    ids=ascii,
)
def test_a_token_that_cannot_be_sent_is_refused_without_being_shown(content: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=rf"^the token file .*token' {text}$"):
        Server("http://127.0.0.1:1", str(file)).get("/live.json", {}, "instances")


@pytest.mark.parametrize("data", [None, b"no certificate"], ids=["missing", "garbage"])
def test_a_file_that_checks_no_certificate_is_refused(data: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if data is not None:
        file.write_bytes(data)

    with pytest.raises(ConfigError, match=r"^certificates cannot be checked by '.*ca.pem': .+; give a PEM file"):
        Server("https://127.0.0.1:1", ca_file=str(file)).get("/live.json", {}, "instances")
