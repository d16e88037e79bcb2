"""A real SuperLink, real SuperNodes and `flwr run`, each a process of its own, ended by its id. It holds no tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = next(
    (root / ".venv-flower" / "bin" for root in (ROOT, Path.cwd()) if (root / ".venv-flower" / "bin" / "flwr").is_file()), None
)
MISSING = "Flower is not here: `make flower` installs it in an environment of its own"
WAIT = 300.0  # seconds until a process has begun; a busy machine takes a minute
needs_flower = pytest.mark.skipif(BIN is None, reason=MISSING)

APP = """
[project]
name = "securetm-federation"
version = "1.0.0"
license = "Apache-2.0"
description = "securetm's messages over SuperLink and SuperNodes"

[tool.flwr.app]
publisher = "securetm"

[tool.flwr.app.components]
serverapp = "{server}:app"
clientapp = "securetm.federation.flower.client_app:app"

[tool.flwr.app.config]
plan = "{plan}"
out = "{out}"
"""


@dataclass(frozen=True)
class Deployed:
    """Where one SuperLink's files lie, and its port."""

    folder: Path
    port: int
    environment: Mapping[str, str]

    def run(self, server: str, plan: Path, *more: str, out: Path | str = "", app: str = "app") -> str:
        """Runs the app with that ServerApp to its end, and returns what it logged."""
        here = self.folder / app
        here.mkdir()
        (here / "pyproject.toml").write_text(APP.format(server=server, plan=plan, out=out), "utf-8")
        command = [flower("flwr"), "run", str(here), "local", "--stream", *more]
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=1_500, check=True)
        return ended.stdout + ended.stderr

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text("utf-8")


def flower(command: str) -> str:
    assert BIN is not None
    return str(BIN / command)


def environment(folder: Path) -> dict[str, str]:
    """Flower's own folder is below the test's; it asks no server for news, and looks for tasks often."""
    assert BIN is not None
    path = os.pathsep.join((str(Path(__file__).with_name("patient")), str(ROOT)))
    ours = {"FLWR_HOME": str(folder / "home"), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    found = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return {**os.environ, **ours, **found, "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1"}


@contextmanager
def deployed(folder: Path, sockets: Sequence[Path] = (), *options: str) -> Iterator[Deployed]:
    """A SuperLink with these options, and a SuperNode for each of these sockets of parties."""
    port = free_port()
    (folder / "home").mkdir(parents=True)
    settings = f'[superlink]\ndefault = "local"\n[superlink.local]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    (folder / "home" / "config.toml").write_text(settings, "utf-8")
    made = Deployed(folder, port, environment(folder))
    link = [
        "flower-superlink",
        *options,
        "--insecure",
        "--disable-runtime-dependency-installation",
        "--host",
        "127.0.0.1",
        "--port",
    ]
    with ExitStack() as running:
        running.enter_context(process(folder / "link.log", [*link, str(port)], made.environment))
        until(lambda: listens(port), lambda: made.log("link"))
        for place, path in enumerate(sockets):
            node = ["flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{port}", "--host", "127.0.0.1"]
            node += ["--port", str(free_port()), "--node-config", f"socket='{path}'"]
            running.enter_context(process(folder / f"node{place}.log", node, made.environment))
        for place in range(len(sockets)):
            until(lambda place=place: "SuperNode ID" in made.log(f"node{place}"), lambda place=place: made.log(f"node{place}"))
        yield made


@contextmanager
def process(log: Path, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its children in a group of its own, which ends with the block."""
    name = command[0] if command[0] == sys.executable else flower(command[0])
    with log.open("wb") as to:
        running = subprocess.Popen([name, *command[1:]], env=environment, stdout=to, stderr=to, start_new_session=True)
    try:
        yield running
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def until(condition: Callable[[], bool], log: Callable[[], str]) -> None:
    """Waits for a state, with a generous limit."""
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, log()
        time.sleep(0.2)


def listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])
