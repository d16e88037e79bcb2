"""A Ray cluster of one machine, started as its operator would, with a token and TLS of the test's own. It joins nothing."""

from __future__ import annotations

import datetime
import ipaddress
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from securetm.engines.listening import family
from securetm.engines.ray_host import handle
from securetm.trial.files import free_port

PATIENCE = 300.0  # seconds, far more than is needed
_PORTS = ("port", "node-manager-port", "object-manager-port", "metrics-export-port", "runtime-env-agent-port")
_AGENTS = ("dashboard-agent-grpc-port", "dashboard-agent-listen-port", "ray-client-server-port")


def with_token(folder: Path) -> dict[str, str]:
    """The environment of a cluster, and of who may join it."""
    token = folder / "token"
    token.write_text(secrets.token_hex(32), "utf-8")
    token.chmod(0o600)
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}


def with_tls(folder: Path) -> dict[str, str]:
    """The same, with certificates of an authority that is made here."""
    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ray-ca")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "node1")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificates = {
        "ca": _builder(issuer, issuer, authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority, hashes.SHA256()),
        "node": _builder(subject, issuer, own)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority, hashes.SHA256()),
    }
    for name, certificate in certificates.items():
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key = own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "node.key").write_bytes(key)
    files = {"SERVER_CERT": "node.pem", "SERVER_KEY": "node.key", "CA_CERT": "ca.pem"}
    return {"RAY_USE_TLS": "1", **{f"RAY_TLS_{name}": str(folder / file) for name, file in files.items()}}


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


@contextmanager
def head(environment: Mapping[str, str], processors: int = 2) -> Iterator[str]:
    """The address of a cluster's first machine, which listens on this one alone. All of its processes are ended."""
    ports = {name: free_port() for name in (*_PORTS, *_AGENTS)}
    with tempfile.TemporaryDirectory(prefix="head-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address=127.0.0.1"]
        command += [f"--num-cpus={processors}", "--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={folder}"]
        command += [f"--{name}={port}" for name, port in ports.items()]
        own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        own |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "PYTHONUNBUFFERED": "1", **environment}
        started = subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            assert started.stdout is not None
            said = b""
            while b"Ray runtime started" not in said:
                line = started.stdout.readline()
                assert line, said.decode()
                said += line
            yield f"127.0.0.1:{ports['port']}"
        finally:
            end(started)


def end(started: subprocess.Popen[bytes]) -> None:
    """Ends a process with all that it started."""
    ours = [one for one in map(handle, family(started.pid)) if one]
    started.terminate()
    for one in ours:
        if not select.select([one], (), (), 10)[0]:
            signal.pidfd_send_signal(one, signal.SIGKILL)
            assert select.select([one], (), (), PATIENCE)[0]
        os.close(one)
    started.wait(PATIENCE)
    if started.stdout is not None:
        started.stdout.close()
