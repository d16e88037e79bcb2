"""Rounds of Flower's SecAgg+ through its own simulation engine: every client gives one vector, and the server opens the sum.

Run by an interpreter that has flwr with ray:
python flower_secagg_rounds.py PARTIES LENGTH NEIGHBOURS THRESHOLD UNCOUNTED ROUNDS CORES
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
from flwr.client import Client, ClientApp, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.common import Context, FitIns, Parameters, ndarrays_to_parameters
from flwr.server import LegacyContext, ServerApp, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.simulation import run_simulation


class Summing(FedAvg):  # type: ignore[misc]
    """Asks all clients for their vectors and sends nothing but the question: the round is a sum, and no model travels."""

    def configure_fit(self, server_round: int, parameters: Parameters, client_manager: Any) -> list[Any]:  # noqa: ARG002
        chosen = client_manager.sample(client_manager.num_available())
        return [(client, FitIns(ndarrays_to_parameters([]), {})) for client in chosen]


class Holder(NumPyClient):  # type: ignore[misc]
    def __init__(self, length: int) -> None:
        self.length = length

    def fit(self, parameters: object, config: object) -> tuple[list[Any], int, dict[str, Any]]:  # noqa: ARG002
        """Gives the vector, whose weight is one."""
        return [np.linspace(-1, 1, self.length, dtype=np.float32)], 1, {}


class Counting:
    """The grid of a run, which also counts the bytes that clients send."""

    def __init__(self, grid: Any) -> None:
        self.grid, self.up = grid, 0

    def send_and_receive(self, messages: Any, timeout: float | None = None) -> list[Any]:
        replies = list(self.grid.send_and_receive(messages, timeout=timeout))
        for reply in replies:
            for record in reply.content.config_records.values():
                self.up += sum(_bytes(value) for value in record.values())
        return replies


def _bytes(value: Any) -> int:
    values = value if isinstance(value, list) else [value]
    return sum(len(one) if isinstance(one, bytes) else 8 for one in values)


def main() -> None:
    parties, length, neighbours, threshold, uncounted, rounds, cores = map(int, sys.argv[1:])
    seconds: list[float] = []
    sent: list[int] = []
    sums: list[float] = []
    masked = SecAggPlusWorkflow(num_shares=neighbours + 1, reconstruction_threshold=threshold, max_weight=1.0)

    def timed(grid: Any, context: Any) -> None:
        counting = Counting(grid)
        begun = time.perf_counter()
        masked(counting, context)
        seconds.append(time.perf_counter() - begun)
        sent.append(counting.up)

    server, client = ServerApp(), ClientApp(client_fn=lambda _: _client(length), mods=[secaggplus_mod])

    @server.main()  # type: ignore[untyped-decorator]
    def conduct(grid: Any, context: Context) -> None:
        strategy = Summing(fraction_fit=1.0, fraction_evaluate=0.0, min_available_clients=parties)
        strategy.initial_parameters = ndarrays_to_parameters([np.zeros(length, np.float32)])
        config = ServerConfig(num_rounds=uncounted + rounds)
        legacy = LegacyContext(context=context, config=config, strategy=strategy)
        DefaultWorkflow(fit_workflow=timed)(grid, legacy)
        opened = legacy.state.array_records["parameters"]
        sums.append(float(np.abs(next(iter(opened.values())).numpy() - np.linspace(-1, 1, length)).max()))

    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": cores}}
    run_simulation(server, client, parties, backend_config=backend)
    result: dict[str, Any] = {
        "version": version("flwr"),
        "ray": version("ray"),
        "seconds": seconds[uncounted:],
        "bytes_up": sent[uncounted:],
    }
    result |= {"error": sums[0], "peak_mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    sys.stdout.write("\n" + json.dumps(result) + "\n")


def _client(length: int) -> Client:
    return Holder(length).to_client()


if __name__ == "__main__":
    main()
