"""What the engine `ray` refuses before anything starts, and how its folder and the addresses it hears on are looked at."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from securetm.engines import ray_engine
from securetm.engines.listening import heard_elsewhere, listened
from securetm.engines.ray_engine import RayFolder, check_address
from securetm.engines.ray_worker import check_versions, versions
from securetm.errors import Failed, Mistake

TLS = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")


@pytest.fixture
def closed(tmp_path: Path) -> dict[str, str]:
    """The environment of a cluster that lets nobody else in."""
    for name in ("token", *TLS):
        (tmp_path / name).write_text("content", "utf-8")
    files = {name: str(tmp_path / name) for name in TLS}
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}
    return {"HOME": str(tmp_path), "RAY_USE_TLS": "1", **token, **files}


def without(environment: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in names}


def test_a_closed_cluster_may_be_joined(closed: dict[str, str]) -> None:
    check_address("10.1.2.3:6379", closed)
    check_address("head.example:6379", {**without(closed, "RAY_AUTH_TOKEN_PATH"), "RAY_AUTH_TOKEN": "a token"})
    check_address("127.0.0.1:6379", without(closed, "RAY_USE_TLS", *TLS))
    check_address("[::1]:6379", without(closed, "RAY_USE_TLS", *TLS))


@pytest.mark.parametrize("address", ["127.0.0.1:6379", "10.1.2.3:6379"])
@pytest.mark.parametrize("missing", ["RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"])
def test_a_cluster_without_a_token_is_refused_even_here(address: str, missing: str, closed: dict[str, str]) -> None:
    with pytest.raises(Mistake, match=address):
        check_address(address, without(closed, missing))
    with pytest.raises(Mistake, match="no token is at hand"):
        check_address(address, {**closed, "RAY_AUTH_MODE": "disabled"})


@pytest.mark.parametrize("missing", ["RAY_USE_TLS", *TLS])
def test_a_cluster_beyond_this_machine_needs_tls(missing: str, closed: dict[str, str]) -> None:
    with pytest.raises(Mistake, match=missing):
        check_address("10.1.2.3:6379", without(closed, missing))
    with pytest.raises(Mistake, match="TLS is off"):
        check_address("0.0.0.0:6379", without(closed, missing))


@pytest.mark.parametrize("address", ["auto", "local", "ray://10.1.2.3:10001", "10.1.2.3", "10.1.2.3:", ":6379", "a:b"])
def test_an_address_is_a_host_and_a_port(address: str, closed: dict[str, str]) -> None:
    with pytest.raises(Mistake, match="not a host and a port"):
        check_address(address, closed)


def test_workers_of_other_versions_are_refused() -> None:
    check_versions(versions())
    with pytest.raises(Failed, match=r"securetm 0\.0, and this party has securetm"):
        check_versions("securetm 0.0")


# ---- folders -------------------------------------------------------------------------------------------------------


@pytest.fixture
def above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ray_engine, "folder_of_temporary_files", lambda: tmp_path)
    return tmp_path


def test_a_folder_is_its_owners_and_has_a_token_of_its_own(above: Path) -> None:
    one, two = RayFolder(), RayFolder()
    assert stat.S_IMODE(one.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(one.token.stat().st_mode) == 0o600
    assert len(one.token.read_text("utf-8")) == 64
    assert one.token.read_bytes() != two.token.read_bytes()
    for folder in (one, two):
        folder.remove()
    assert list(above.iterdir()) == []


def test_only_folders_that_nobody_uses_are_deleted(above: Path) -> None:
    used, left, begun = RayFolder(), RayFolder(), above / "securetm-ray-begun"
    begun.mkdir()  # it has no lock yet
    left.lock.close()  # as if its processes were killed
    new = RayFolder()
    assert sorted(above.iterdir()) == sorted([used.path, begun, new.path])
    used.remove()
    new.remove()


# ---- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "address", "elsewhere"),
    [
        (socket.AF_INET, "127.0.0.1", False),
        (socket.AF_INET, "0.0.0.0", True),
        (socket.AF_INET6, "::1", False),
        (socket.AF_INET6, "::ffff:127.0.0.1", False),
        (socket.AF_INET6, "::", True),
    ],
)
def test_a_socket_that_others_reach_is_found(kind: Any, address: str, elsewhere: bool) -> None:
    before = set(heard_elsewhere(os.getpid()))
    with socket.socket(kind) as heard:
        heard.bind((address, 0))
        assert not any(one.endswith(f":{heard.getsockname()[1]}") for one in listened(os.getpid()))
        heard.listen()
        port = heard.getsockname()[1]
        assert any(one.endswith(f":{port}") for one in listened(os.getpid()))
        found = [one for one in set(heard_elsewhere(os.getpid())) - before if one.endswith(f":{port}")]
    assert bool(found) is elsewhere
