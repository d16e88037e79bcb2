"""Rounds of Flower's SecAgg+ through its own simulation engine: every client gives one vector, and the server opens the sum.

Run by an interpreter that has flwr with ray: python flower_secagg_rounds.py PARTIES LENGTH NEIGHBOURS THRESHOLD ROUNDS CORES
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from flwr.client import Client, ClientApp, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.common import Context, FitIns, Parameters, ndarrays_to_parameters
from flwr.server import LegacyContext, ServerApp, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.simulation import run_simulation


class Summing(FedAvg):
    """Asks all clients for their vectors and sends nothing but the question: the round is a sum, and no model travels."""

    def configure_fit(self, server_round: int, parameters: Parameters, client_manager: object) -> list:  # noqa: ARG002
        """One empty question to each client."""
        chosen = client_manager.sample(client_manager.num_available())
        return [(client, FitIns(ndarrays_to_parameters([]), {})) for client in chosen]


class Holder(NumPyClient):
    """Holds one vector."""

    def __init__(self, length: int) -> None:
        self.length = length

    def fit(self, parameters: object, config: object) -> tuple[list[np.ndarray], int, dict]:  # noqa: ARG002
        """Gives the vector, whose weight is one."""
        return [np.linspace(-1, 1, self.length, dtype=np.float32)], 1, {}


def main() -> None:
    """Times what the arguments ask for."""
    parties, length, neighbours, threshold, rounds, cores = map(int, sys.argv[1:])
    seconds: list[float] = []
    sums: list[float] = []
    masked = SecAggPlusWorkflow(num_shares=neighbours + 1, reconstruction_threshold=threshold, max_weight=1.0)

    def timed(grid: object, context: LegacyContext) -> None:
        begun = time.perf_counter()
        masked(grid, context)
        seconds.append(time.perf_counter() - begun)

    server, client = ServerApp(), ClientApp(client_fn=lambda _: _client(length), mods=[secaggplus_mod])

    @server.main()
    def conduct(grid: object, context: Context) -> None:
        strategy = Summing(fraction_fit=1.0, fraction_evaluate=0.0, min_available_clients=parties)
        strategy.initial_parameters = ndarrays_to_parameters([np.zeros(length, np.float32)])
        legacy = LegacyContext(context=context, config=ServerConfig(num_rounds=rounds), strategy=strategy)
        DefaultWorkflow(fit_workflow=timed)(grid, legacy)
        opened = legacy.state.array_records["parameters"]
        sums.append(float(np.abs(next(iter(opened.values())).numpy() - np.linspace(-1, 1, length)).max()))

    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": cores}}
    run_simulation(server, client, parties, backend_config=backend)
    result = {"version": version("flwr"), "ray": version("ray"), "seconds": seconds, "error": sums[0] if sums else None}
    sys.stdout.write("\n" + json.dumps(result) + "\n")


def _client(length: int) -> Client:
    return Holder(length).to_client()


if __name__ == "__main__":
    main()
