"""Models that learn by gradients: what they ask (a sum over one batch, or the difference of weights after local epochs), and
how the holder of their state steps: Adam, SGD, FedAvg, FedAdam, FedYogi, FedAdagrad (Reddi et al. 2021).
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Answer, Array, Block, ClippedSum, Losses, Memory, State, Terms, Unit
from securetm.data_classes import dataclass
from securetm.errors import check_setting
from securetm.models.batches import shuffled
from securetm.models.estimator import Count, Estimator, Finite, Fraction, OrNone, Positive
from securetm.settings import Limit, at_least, one_of


class FlatLayers:
    """Layers that lie one after the other in a flat vector of weights."""

    @cached_property
    def parts(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes of the layers, in the order of the flat vector."""
        raise NotImplementedError

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate((math.prod(shape) for _, shape in self.parts), initial=0))

    @property
    def size(self) -> int:
        return self._ends[-1]

    def views(self, flat: Any) -> dict[str, Any]:
        """Each layer as a view into the flat vector (numpy or torch)."""
        cuts = zip(self.parts, self._ends, self._ends[1:], strict=False)
        return {name: flat[first:end].reshape(shape) for (name, shape), first, end in cuts}


@dataclass(frozen=True)
class StepQuery:
    """Asks for the sum of the documents' gradients at the current weights. The party has drawn the batch already."""

    model: GradientModel
    state: State

    @property
    def terms(self) -> Terms:
        layout = (Block("gradient", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, batch=self.model.batch, bits=_bits(self.state))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        """Adds the gradient of each given document. Their noise is public, so neither memory nor rng is used."""
        if count := len(documents):
            ones = np.ones((count, 1), dtype=self.state["weights"].dtype)
            clipped_sum.add_losses(self.model.losses_of(self.state, documents), owners=np.arange(count), beside=ones)


@dataclass(frozen=True)
class EpochsQuery:
    """Asks each party to train by itself and to answer with the difference of its weights, as one row (FedAvg)."""

    model: Any  # that a party can train by itself (`trained`); its state has one flat array of weights
    state: State

    @property
    def terms(self) -> Terms:
        """One row per party: its difference times its number of documents, and that number."""
        layout = (Block("difference", self.state["weights"].shape), Block("documents", (1,)))
        return Terms(layout, unit=Unit.PARTY, bits=_bits(self.state))

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        """Batches are shuffled by the rng."""
        if count := len(documents):
            difference = self.model.trained(self.state, documents, memory, rng) - self.state["weights"]
            row = np.append(count * difference, difference.dtype.type(count))
            clipped_sum.add(row[None, :], owners=np.zeros(1, dtype=np.int64))


def _bits(state: State) -> int:
    return 8 * state["weights"].dtype.itemsize


SGD, ADAM, AVERAGE, YOGI, ADAGRAD = "sgd", "adam", "average", "yogi", "adagrad"
OPTIMISERS = (ADAM, SGD)
BETA2 = 0.999
TINY = 1e-8


# Python's division raises on zero, and that check would prevent vectorisation: hence numpy's error model.
@njit(cache=True, fastmath={"nsz", "contract", "reassoc"}, error_model="numpy")
def _adam(weights: Array, gradient: Array, scale: Any, first: Array, second: Array, rates: Any) -> None:
    beta1, keep1, beta2, keep2, rate, spread, tiny = rates
    for i in range(len(weights)):
        g = gradient[i] * scale
        first[i] = beta1 * first[i] + keep1 * g
        second[i] = beta2 * second[i] + keep2 * g * g
        weights[i] -= rate * first[i] / (np.sqrt(second[i]) * spread + tiny)


def optimiser_moments(optimiser: str, weights: Array) -> dict[str, Array]:
    return {"first": np.zeros_like(weights), "second": np.zeros_like(weights)} if optimiser == ADAM else {}


def optimiser_step(
    weights: Array, gradient: Array, count: float, memory: State, number: int, rate: float, beta1: float, in_place: bool = False
) -> tuple[Array, dict[str, Array]]:
    """Weights and moments after step `number` (1, 2, ...) along gradient / count. SGD has no moments."""
    if not memory:
        return (weights - rate / count * gradient).astype(weights.dtype, copy=False), {}  # an opened sum may be wider
    first, second = memory["first"], memory["second"]
    if not in_place:
        weights, first, second = weights.copy(), first.copy(), second.copy()
    real = weights.dtype.type
    corrected = rate / (1.0 - beta1**number)
    spread = 1.0 / math.sqrt(1.0 - BETA2**number)
    rates = tuple(real(x) for x in (beta1, 1.0 - beta1, BETA2, 1.0 - BETA2, corrected, spread, TINY))
    _adam(weights, np.ascontiguousarray(gradient, dtype=weights.dtype), real(1.0 / count), first, second, rates)
    return weights, {"first": first, "second": second}


SERVER_STEPS = (AVERAGE, ADAM, YOGI, ADAGRAD)
_MOMENTS, MOMENTS = ("first", "second"), ("server_first", "server_second")
_ADAPTIVE_RATE = 1e-2
_MOST = 1e15  # a larger difference of one weight is clamped, so that its square is finite in single precision
ServerStep = Annotated[str, one_of(*SERVER_STEPS)]
Rate = Annotated[float, Limit(lambda rate: 0 <= rate < np.inf, "must be positive, or 0 for the usual one")]


@dataclass(frozen=True, kw_only=True)
class ServerOptimiser:
    """Settings of a model whose parties answer with differences of weights. The model derives from it before `Estimator`."""

    server: ServerStep = AVERAGE  # average, adam, yogi or adagrad: the step along the parties' mean difference of weights
    server_rate: Rate = 0.0  # of that step; 0: 1 for average, 0.01 for the others
    server_beta1: Fraction = 0.9  # how much of the first moment a round keeps
    server_beta2: Fraction = 0.99  # how much of the second moment a round keeps (adam, yogi)
    server_tau: Finite = 1e-3  # added to the root of the second moment

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
        before, squares, new = state[MOMENTS[1]], bounded * bounded, 1.0 - self.server_beta2
        second = before + squares  # Adagrad's
        if self.server == ADAM:
            second = self.server_beta2 * before + new * squares
        if self.server == YOGI:
            second = before - new * squares * np.sign(before - squares)
        stepped = weights + rate * first / (np.sqrt(second) + self.server_tau)
        return {"weights": stepped, **dict(zip(MOMENTS, (first, second), strict=True))}


@dataclass(frozen=True)
class GradientModel(ServerOptimiser, Estimator):
    """A model whose loss has a gradient for each document; its fields are public settings, all that it learns is in the state.

    It asks for a gradient over one batch. With `local_epochs` a party trains so many epochs on its own documents, and answers
    with the difference of its weights.
    """

    n_topics: Annotated[int, at_least(2)] = 50  # of the shared model
    batch: Count = 64  # documents of each party in a step
    learning_rate: Positive = 2e-3  # of a step
    beta1: Fraction = 0.9  # of Adam
    optimiser: Annotated[str, one_of(*OPTIMISERS)] = ADAM  # adam or sgd
    dtype: Annotated[str, one_of("float32", "float64")] = "float32"  # float32 or float64
    local_epochs: OrNone = 0  # at each party in a round; 0: a gradient per batch
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_epochs: ClassVar[float] = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "server", self.local_epochs > 0 or self.server == AVERAGE, "needs local_epochs of at least 1")

    @property
    def epochs_per_round(self) -> int:
        return max(1, self.local_epochs)

    @abstractmethod
    def losses_of(self, state: State, documents: Any) -> Losses:
        """The losses of these documents."""

    @abstractmethod
    def local_gradient(self, state: State, documents: Any, rows: Array, number: int) -> Array:
        """The gradient of a party's local step of that number, on these of its documents."""

    def restored(self, weights: Array) -> Array:
        """The weights as they must be after every step."""
        return weights

    def query(self, state: State) -> StepQuery | EpochsQuery:
        return EpochsQuery(self, state) if self.local_epochs else StepQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        return self.advance(state, answer.total or {}, in_place=False)

    def advance(self, state: State, total: Mapping[str, Array], in_place: bool) -> State:
        """`update` on bare blocks; in place it reuses the state's arrays, which nobody else may hold."""
        count = float(total["documents"][0]) if "documents" in total else 0.0
        after = {**state, "step": state["step"] + 1}
        if count <= 0.0:  # no document was drawn, or noise made the count negative
            return after
        if self.local_epochs:
            after = {**after, **self.server_step(state, total["difference"] / count)}
            return {**after, "weights": self.restored(after["weights"])}
        memory: State = {name: state[name] for name in _MOMENTS if name in state}
        number = int(after["step"][0])
        weights, memory = self.stepped(state["weights"], total["gradient"], count, memory, number, in_place)
        return {**after, "weights": weights, **memory}

    def for_party(self, state: State, party: str) -> State:
        return {name: array for name, array in state.items() if name not in (*_MOMENTS, *MOMENTS)}

    def trained(self, state: State, documents: Any, memory: Memory, rng: np.random.Generator) -> Array:
        """The weights after the local epochs of one party. The optimiser starts without moments, since these never travel."""
        weights = state["weights"].copy()
        moments: State = optimiser_moments(self.optimiser, weights)
        for number, rows in enumerate(shuffled(len(documents), self.batch, self.local_epochs, rng), start=1):
            gradient = self.local_gradient({**state, "weights": weights}, documents, rows, number)
            weights, moments = self.stepped(weights, gradient, len(rows), moments, number, in_place=True)
        return weights

    def stepped(
        self, weights: Array, gradient: Array, count: float, memory: State, number: int, in_place: bool
    ) -> tuple[Array, State]:
        """Weights and moments after one step along the mean gradient."""
        rates = self.learning_rate, self.beta1
        weights, memory = optimiser_step(weights, gradient, count, memory, number, *rates, in_place)
        return self.restored(weights), memory
