"""Why a party does not work with Ray: it is not installed, does not start, or would let others in."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class NoRay(Misuse):
    """the engine ray needs Ray, which is not installed"""

    hint = "pip install 'securetm[ray]'"


class RayDidNotStart(SecuretmError):
    """Ray did not start: {problem}"""

    problem: str
    hint = "the engine `pool` needs no cluster; the page docs/how-to/cluster.md says what Ray needs"


class RayListens(SecuretmError):
    """Ray listens on {addresses}, where other machines can reach it, so it was ended"""

    addresses: str
    hint = "this is a fault of securetm or of a new version of Ray: please report it, and use the engine `pool` meanwhile"


class BadRayAddress(Misuse):
    """the address of a Ray cluster is {address!r}, which is not a host and a port"""

    address: str
    hint = 'write `address = "10.1.2.3:6379"`, or leave the address out: then the party starts Ray on its own machine'


class ClusterWithoutToken(Misuse):
    """no token is at hand for the Ray cluster at {address}, so anybody who reaches it could run programs as this party"""

    address: str
    hint = "start the cluster and this party with RAY_AUTH_MODE=token and one RAY_AUTH_TOKEN_PATH (docs/how-to/cluster.md)"


class ClusterWithoutTls(Misuse):
    """TLS is off for the Ray cluster at {address}, so documents and sums would cross the network as they are; {problem}"""

    address: str
    problem: str
    hint = (
        "start the cluster and this party with RAY_USE_TLS=1, RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY and RAY_TLS_CA_CERT "
        "(docs/how-to/cluster.md)"
    )


class ClusterLetsAnyoneIn(SecuretmError):
    """the Ray cluster at {address} answers who shows no token"""

    address: str
    hint = "start every machine of the cluster with RAY_AUTH_MODE=token (docs/how-to/cluster.md)"


class NoClusterAnswers(SecuretmError):
    """no Ray cluster answers at {address}: {problem}"""

    address: str
    problem: str
    hint = "is it started, is that the address of its first machine, and has it the same TLS settings? (docs/how-to/cluster.md)"


class ClusterRefusesToken(SecuretmError):
    """the Ray cluster at {address} refuses the token of this party"""

    address: str
    hint = "give this party the token that the cluster was started with, by RAY_AUTH_TOKEN_PATH (docs/how-to/cluster.md)"


class ClusterElsewhere(SecuretmError):
    """the Ray cluster at {address} has machines at {others}, and TLS is off"""

    address: str
    others: str
    hint = "use TLS (docs/how-to/cluster.md), or a cluster on this machine alone"


class ClusterTooSmall(SecuretmError):
    """the Ray cluster at {address} has {found} processors, and [engine] asks for {workers} workers"""

    address: str
    found: int
    workers: int
    hint = "take fewer workers in [engine], or add machines to the cluster"


class WorkersDiffer(SecuretmError):
    """a worker of the Ray cluster has {theirs}, and this party has {ours}: their answers may differ"""

    theirs: str
    ours: str
    hint = "install the same versions on every machine of the cluster"
