"""Says whether a member's process works: for monitors of containers and services. It starts nothing and changes nothing.

The coordinator is asked over mutual TLS through its own gRPC health service. A party listens on no port; it holds a lock.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import check_address
from securetm.federation.coordinator_files import CoordinatorFiles
from securetm.federation.joining.party_home import PartyHome
from securetm.federation.network.hub import SERVICE
from securetm.federation.network.tls import channel_credentials
from securetm.federation.serving_errors import NotAtWork
from securetm.party_policy import PartyFile

_SECONDS = 10.0
_HERE = "127.0.0.1"  # of a coordinator that listens at every address of this machine


def check_coordinator_works(listen: str, files: CoordinatorFiles) -> None:
    """Refuses unless the coordinator at this address says that it serves."""
    host, port = check_address(listen, "[coordinator]")
    address = f"{_HERE if host in ('0.0.0.0', '::') else host}:{port}"  # noqa: S104 - nothing is opened there
    named = (("grpc.ssl_target_name_override", files.roster.coordinator.certificate.names[0]),)
    credentials = channel_credentials(COORDINATOR, files.keys, files.roster)
    with grpc.secure_channel(address, credentials, options=named) as channel:
        asked = health_pb2.HealthCheckRequest(service=SERVICE)
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(asked, timeout=_SECONDS)
        except grpc.RpcError as problem:
            raise NotAtWork(COORDINATOR, f"{address} answers {problem.code().name}") from problem
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise NotAtWork(COORDINATOR, "it is about to end")


def check_party_works(path: Path) -> None:
    """Refuses unless a process works on the data set of this PARTY.toml."""
    file = PartyFile.read(path)
    lock = PartyHome(file.home_folder, file.name, file.data.identity).data / "lock"
    if not lock.is_file():
        raise NotAtWork(file.name, f"no process has worked on data set {file.data.identity} yet")
    with lock.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)  # held for no longer than it takes to leave this block
        except BlockingIOError:
            return
    raise NotAtWork(file.name, f"no process works on data set {file.data.identity}")
