"""What the holder of a model's state does with the parties' mean difference of weights: FedAvg, FedAdam, FedYogi, FedAdagrad.

They know flat vectors and their own moments, no model, and no party (Reddi et al. 2021, "Adaptive federated optimization").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array, State
from securetm.errors import check_setting

AVERAGE, ADAM, YOGI, ADAGRAD = "average", "adam", "yogi", "adagrad"
KNOWN = (AVERAGE, ADAM, YOGI, ADAGRAD)
MOMENTS = ("server_first", "server_second")
_ADAPTIVE_RATE = 1e-2
_MOST = 1e15  # a larger difference of one weight is clamped, so that its square is finite in single precision


@dataclass(frozen=True, kw_only=True)
class ServerOptimiser:
    """Settings of a model whose parties answer with differences of weights. The model derives from it before `Estimator`."""

    server: str = AVERAGE  # average, adam, yogi or adagrad: the step along the parties' mean difference of weights
    server_rate: float = 0.0  # of that step; 0: 1 for average, 0.01 for the others
    server_beta1: float = 0.9  # how much of the first moment a round keeps
    server_beta2: float = 0.99  # how much of the second moment a round keeps (adam, yogi)
    server_tau: float = 1e-3  # added to the root of the second moment

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of `Estimator`
        check_setting(self, "server", self.server in KNOWN, f"must be one of {KNOWN}")
        check_setting(self, "server_rate", 0 <= self.server_rate < np.inf, "must be positive, or 0 for the usual one")
        check_setting(self, "server_beta1", 0 <= self.server_beta1 < 1, "must be at least 0 and below 1")
        check_setting(self, "server_beta2", 0 <= self.server_beta2 < 1, "must be at least 0 and below 1")
        check_setting(self, "server_tau", 0 < self.server_tau < np.inf, "must be positive and finite")

    def server_moments(self, weights: Array) -> dict[str, Array]:
        """The moments at the start: none of the differences is known, and the second moment is tau squared."""
        if self.server == AVERAGE:
            return {}
        return dict(zip(MOMENTS, (np.zeros_like(weights), np.full_like(weights, self.server_tau**2)), strict=True))

    def server_step(self, state: State, difference: Array) -> dict[str, Array]:
        """The weights and moments after one step along the mean difference; `state` stays as it is."""
        weights = state["weights"]
        rate = self.server_rate or (1.0 if self.server == AVERAGE else _ADAPTIVE_RATE)
        if self.server == AVERAGE:
            return {"weights": weights + (rate * difference).astype(weights.dtype)}
        bounded = np.clip(difference, -_MOST, _MOST).astype(weights.dtype)
        first = self.server_beta1 * state[MOMENTS[0]] + (1.0 - self.server_beta1) * bounded
        second = self._second(state[MOMENTS[1]], bounded * bounded)
        stepped = weights + rate * first / (np.sqrt(second) + self.server_tau)
        return {"weights": stepped, **dict(zip(MOMENTS, (first, second), strict=True))}

    def _second(self, before: Array, squares: Array) -> Array:
        """The second moment after one round."""
        new = 1.0 - self.server_beta2
        after: Array = before + squares  # Adagrad's
        if self.server == ADAM:
            after = self.server_beta2 * before + new * squares
        if self.server == YOGI:
            after = before - new * squares * np.sign(before - squares)
        return after
