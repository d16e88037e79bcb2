"""The operator's web server answers GET on this machine and nothing else, however slowly or often it is asked."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from securetm.errors import Mistake
from securetm.federation.coordinator import pages as local_pages
from securetm.federation.coordinator.pages import MOST_CLIENTS, LocalPages

HERE = b"Host: localhost\r\n"


@pytest.fixture
def pages() -> Iterator[LocalPages]:
    with LocalPages({"/": lambda: ("text/plain", b"hello")}, 0) as opened:
        yield opened


def said(pages: LocalPages, request: bytes) -> bytes:
    """All that comes back."""
    with socket.create_connection(("127.0.0.1", pages.port), 30) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(65_536), b""))


def test_a_page_comes_with_what_keeps_a_browser_from_anything_else(pages: LocalPages) -> None:
    head, _, content = said(pages, b"GET /?x=1 HTTP/1.1\r\n" + HERE + b"\r\n").partition(b"\r\n\r\n")
    assert content == b"hello"
    assert head.startswith(b"HTTP/1.1 200 OK")
    for wanted in (b"default-src 'none'", b"frame-ancestors 'none'", b"no-store", b"nosniff", b"Content-Length: 5"):
        assert wanted in head
    assert said(pages, b"HEAD / HTTP/1.1\r\n" + HERE + b"\r\n").endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\n" + HERE + b"\r\n", b"405"),
        (b"GET /../plan.toml HTTP/1.1\r\n" + HERE + b"\r\n", b"404"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\n" + HERE + HERE + b"\r\n", b"421"),
        (b"GET /\r\n\r\n", b"400"),
        (b"\xff\xfe\x00 \x80\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1 more\r\n\r\n", b"400"),
    ],
)
def test_everything_else_is_refused(pages: LocalPages, request_: bytes, status: bytes) -> None:
    assert said(pages, request_).split(b" ")[1] == status


def test_slow_and_endless_requests_end(pages: LocalPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_pages, "SECONDS", 0.3)
    assert said(pages, b"GET / HTTP/1.1\r\nA: ") == b""  # never finished
    with suppress(ConnectionError):  # cut off while it was still being sent
        assert said(pages, b"GET / HTTP/1.1\r\nA: " + b"x" * 1_000_000) == b""
    assert said(pages, b"GET / HTTP/1.1\r\n" + HERE + b"\r\n").endswith(b"hello")


def test_more_clients_than_it_takes_are_sent_away_and_it_goes_on(pages: LocalPages) -> None:
    idle = [socket.create_connection(("127.0.0.1", pages.port), 30) for _ in range(4 * MOST_CLIENTS)]
    waiting = set(idle)
    while len(waiting) > MOST_CLIENTS:  # the server closes the others; those that it took may still send their request
        closed, _, _ = select.select(list(waiting), [], [], 30)
        assert closed
        waiting -= set(closed)
    for client in idle:
        client.close()
    for _ in range(1_000):
        try:
            if said(pages, b"GET / HTTP/1.1\r\n" + HERE + b"\r\n").endswith(b"hello"):
                return
        except ConnectionError:
            continue
    raise AssertionError("it never answered again")


def test_a_port_that_is_taken_is_named(pages: LocalPages) -> None:
    with pytest.raises(Mistake, match=f"127.0.0.1:{pages.port}"), LocalPages({}, pages.port):
        pass
