"""Asks a given Ray cluster whether it lets anybody in, before a party joins it. It joins nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping

from securetm.engines.ray_errors import ClusterLetsAnyoneIn, ClusterRefusesToken, NoClusterAnswers

_ANSWERED = 10  # seconds in which the machine of a cluster answers
_PROBED = 60  # seconds in which a cluster answers, or does not
_REFUSED = b"AuthenticationError"  # how Ray's own program names what a cluster says to a wrong token


def check_closed(address: str, environment: Mapping[str, str]) -> None:
    """Refuses a cluster that answers a program without its token, that refuses the party's own, or that does not answer."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWERED):
            pass
    except OSError as problem:
        raise NoClusterAnswers(address, problem.strerror or str(problem)) from problem
    without = {name: value for name, value in environment.items() if not name.startswith("RAY_AUTH_")}
    if _lets_in(address, {**without, "RAY_AUTH_MODE": "disabled"}):
        raise ClusterLetsAnyoneIn(address)
    if not _lets_in(address, environment):
        raise ClusterRefusesToken(address)


def _lets_in(address: str, environment: Mapping[str, str]) -> bool:
    """Whether the cluster answers a program with that environment; it has to say yes or no."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address, "--skip-version-check"]
    try:
        found = subprocess.run(command, env=environment, capture_output=True, timeout=_PROBED, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as problem:
        raise NoClusterAnswers(address, f"what listens there said nothing for {_PROBED} seconds") from problem
    if found.returncode and _REFUSED not in found.stderr:
        raise NoClusterAnswers(address, "what listens there does not speak as a Ray cluster with these settings")
    return not found.returncode
