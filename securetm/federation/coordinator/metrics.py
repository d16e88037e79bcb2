"""The metrics of a coordinator for Prometheus, made from the public facts when they are asked for. It keeps no state.

No figure of one party depends on documents: how long a party took is not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from securetm.federation.coordinator.standing import AWAY, Facts


class FactsCollector(Collector):
    """Turns a snapshot of the facts into metrics."""

    def __init__(self, facts: Callable[[], Facts]) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        """Yields every metric."""
        facts = self._facts()
        yield _gauge("rounds", "Rounds of training that led to the present model.", facts.done)
        yield _gauge("rounds_planned", "Most rounds of the plan.", facts.of)
        yield _gauge("sessions", "Sessions that this process began.", facts.session)
        yield CounterMetricFamily("securetm_waves", "Waves of messages to the parties.", facts.waves)
        yield _gauge("parties", "Parties of the roster.", len(facts.parties))
        here = sum(party.state != AWAY for party in facts.parties.values())
        yield _gauge("parties_connected", "Parties that are connected.", here)
        yield _gauge("survivors", "Parties over which the last answer was opened.", len(facts.survivors))
        if facts.seconds_per_round is not None:
            yield _gauge("seconds_per_round", "Mean over the last rounds.", facts.seconds_per_round)
        carried = CounterMetricFamily("securetm_bytes", "Bytes of messages that passed.", labels=["direction"])
        carried.add_metric(["up"], facts.bytes_up)
        carried.add_metric(["down"], facts.bytes_down)
        yield carried
        refused = CounterMetricFamily("securetm_refusals", "Refusals by their name.", labels=["name"])
        for name, times in sorted(facts.refusals.items()):
            refused.add_metric([name], times)
        yield refused
        if facts.epsilon is not None:
            yield _gauge("epsilon", "Spent of each unit's budget by the plan, at most.", float(facts.epsilon["epsilon"]))


def metrics_page(facts: Callable[[], Facts]) -> Callable[[], tuple[str, bytes]]:
    """Returns a page with these metrics as they are when it is asked for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(FactsCollector(facts))
    return lambda: (CONTENT_TYPE_LATEST, generate_latest(registry))


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"securetm_{name}", what, value)
