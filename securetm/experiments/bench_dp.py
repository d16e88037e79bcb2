"""What a DP-SGD step costs beside the same step without privacy, and beside Opacus on the same network. It spends no budget.

All run on one thread and take turns, so that a busy machine slows all; the fastest turn of each counts. A step goes from a
drawn batch to the next weights: ours over sparse counts, Opacus's over the dense ones that its layers need.
"""

from __future__ import annotations

import multiprocessing
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module, util
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from scipy import sparse

from securetm.clipped_sum import ClippedRowSum, blocks_of
from securetm.contracts import Cohort, Mechanism, RoundContext, State
from securetm.entropy import OperatingSystem
from securetm.experiments.peaks import measurable, peak_mebibytes
from securetm.experiments.torch_prodlda import TorchProdLDA, drawn
from securetm.mechanisms.clipping import Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.quantising import FixedPoint
from securetm.models.estimator import BagOfWords
from securetm.models.neural.prodlda import ProdLDA
from securetm.route import Route

TURNS, MEMORY_STEPS = 12, 4
TIME_LIMIT, MEMORY_LIMIT = 1.5, 1.3  # times the step without privacy
RADIUS, NOISE = 1.0, 1.0
ROOM = 0.02  # of the ring, for noise, as in the profiles that come with us: 32 bits then hold all of it

FREE, CLIPPED, ROUNDED, NOISED = "without privacy", "clipped", "clipped and rounded", "clipped, rounded and noised"
HOOKS, GHOST = "Opacus hooks", "Opacus ghost clipping"
STEPS: Mapping[str, tuple[Mechanism, ...]] = {
    FREE: (),
    CLIPPED: (Clip(RADIUS),),
    ROUNDED: (Clip(RADIUS), FixedPoint(headroom=ROOM)),
    NOISED: (Clip(RADIUS), FixedPoint(headroom=ROOM), GaussianNoise(NOISE)),
}

OnProgress = Callable[[int, int], None]
Step = Callable[[], object]


def bench(on_progress: OnProgress | None = None, words: int = 5_000, batch: int = 256) -> dict[str, Any]:
    """Milliseconds and peak memory of one step: ours by how much of the way it goes, and theirs where Opacus is installed."""
    there = util.find_spec("opacus") is not None
    names = [*STEPS, *([HOOKS, GHOST] if there else [])]
    kinds = [_times, _peaks] if measurable() else [_times]
    done = _Counted(on_progress, (TURNS * len(names)) + len(names) * (len(kinds) - 1))
    model = _model(batch)
    case = f"V = {words:,}, H = {model.hidden}, K = {model.n_topics}, batch {batch}, 1 thread"
    rows = [row for kind in kinds for row in _rows(case, *kind(names, words, batch, done))]
    missing = [] if there else ["opacus"]
    return {
        "bench": "dp",
        "machine": _machine(there),
        "corpus": "synthetic: 70 words a document, by Zipf's law",
        "coordinates": model.query(_state(model, words)).terms.size,
        "rows": rows,
        "missing": missing if measurable() else [*missing, "peak memory: only on Linux"],
    }


class _Counted:
    """Progress by one piece after the other."""

    def __init__(self, tell: OnProgress | None, total: int) -> None:
        self._tell, self._total, self._done = tell, total, 0

    def __call__(self) -> None:
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._total)


# ---- our step ------------------------------------------------------------------------------------------------------------


class _Store(dict[str, bytes]):
    """A party's memory for the time of one bench."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value


def _model(batch: int) -> ProdLDA:
    return ProdLDA(batch=batch, device="cpu")


def _state(model: ProdLDA, words: int) -> State:
    return model.start(tuple(f"word {v}" for v in range(words)), np.random.default_rng(0))


def _documents(words: int, batch: int) -> BagOfWords:
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, words + 1)
    drawn_words = rng.choice(words, (batch, 70), p=share / share.sum())
    cells = (np.ones(drawn_words.size, dtype=np.int32), (np.repeat(np.arange(batch), 70), drawn_words.ravel()))
    counts = sparse.coo_array(cells, (batch, words)).tocsr()
    return BagOfWords(counts, tuple(f"word {v}" for v in range(words)), rng.integers(0, 2**64, batch, dtype=np.uint64))


def _ours(name: str, words: int, batch: int) -> Step:
    """A party's answer through all steps and back, and the optimiser's step, on one machine."""
    model, documents, cohort = _model(batch), _documents(words, batch), Cohort(b"", 0, ("party",))
    state, context = _state(model, words), RoundContext(cohort, OperatingSystem(), _Store())
    route = Route.through(model.query(state).terms, STEPS[name], cohort)
    terms = route.terms

    def step() -> None:
        nonlocal state
        query = model.query(state)
        clipped_sum = ClippedRowSum(query.terms, route.radius)
        query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
        vector = clipped_sum.vector()
        for one in route.steps:
            vector = one.mechanism.on_vector(vector, one.after, context)
        opened = np.multiply(vector, np.float32(terms.grid), dtype=np.float32) if terms.grid else vector
        state = model.advance(state, blocks_of(opened, terms), in_place=True)

    return step


# ---- Opacus's step -------------------------------------------------------------------------------------------------------


class _Sum:
    """The criterion that Opacus's ghost clipping wants: the network's own losses, one per document."""

    reduction = "sum"

    def __call__(self, losses: torch.Tensor) -> torch.Tensor:
        return losses


def _theirs(name: str, words: int, batch: int) -> Step:
    """Forward, backward, clip, noise and Adam as Opacus does them; the model's own noise is given for nothing."""
    warnings.simplefilter("ignore")  # of Opacus, about generators and hooks
    wrap, optimisers = import_module("opacus.grad_sample"), import_module("opacus.optimizers")
    model, documents = _model(batch), _documents(words, batch)
    state, ghost = _state(model, words), name == GHOST
    noise = drawn(model._noise(state, documents.keys))
    about = {"noise_multiplier": NOISE, "max_grad_norm": RADIUS, "expected_batch_size": batch, "loss_reduction": "sum"}
    bare = TorchProdLDA(model, state)
    adam = torch.optim.Adam([p for p in bare.parameters() if p.requires_grad], lr=model.learning_rate)
    if ghost:
        network = wrap.GradSampleModuleFastGradientClipping(bare, max_grad_norm=RADIUS, loss_reduction="sum")
        optimiser = optimisers.DPOptimizerFastGradientClipping(adam, **about)
        fast = import_module("opacus.utils.fast_gradient_clipping_utils").DPLossFastGradientClipping
        total = fast(network, optimiser, _Sum(), loss_reduction="sum")
    else:
        network, total = wrap.GradSampleModule(bare, loss_reduction="sum"), torch.sum
        optimiser = optimisers.DPOptimizer(adam, **about)

    def step() -> None:
        optimiser.zero_grad()
        counts = torch.from_numpy(documents.counts.toarray().astype(np.float32))
        total(network(counts, *noise)).backward()
        optimiser.step()

    return step


# ---- measuring and the record --------------------------------------------------------------------------------------------


def _step(name: str, words: int, batch: int) -> Step:
    return _ours(name, words, batch) if name in STEPS else _theirs(name, words, batch)


Figures = dict[str, float]


def _times(names: list[str], words: int, batch: int, done: Callable[[], None]) -> tuple[str, str, float, Figures]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            steps = {name: _step(name, words, batch) for name in names}
            best = {name: _milliseconds(step) for name, step in steps.items()}  # compiles
            for _ in range(TURNS):
                for name, step in steps.items():
                    step()  # so that none meets the caches as another left them
                    best[name] = min(best[name], _milliseconds(step))
                    done()
    finally:
        torch.set_num_threads(before)
    return "step", "ms", TIME_LIMIT, best


def _milliseconds(step: Step) -> float:
    begun = time.perf_counter()
    step()
    return (time.perf_counter() - begun) * 1e3


def _peaks(names: list[str], words: int, batch: int, done: Callable[[], None]) -> tuple[str, str, float, Figures]:
    peaks = {}
    for name in names:
        peaks[name] = peak_mebibytes(_some_steps, name, words, batch)
        done()
    return "peak memory", "MiB", MEMORY_LIMIT, peaks


def _some_steps(name: str, words: int, batch: int) -> Callable[[], object]:
    """A few steps with everything they need, weights included; compilers and imports have done their work before."""
    torch.set_num_threads(1)
    _step(name, 60, 3)()
    return lambda: [step() for step in [_step(name, words, batch)] for _ in range(MEMORY_STEPS)]


def _rows(case: str, what: str, unit: str, limit: float, figures: Figures) -> list[dict[str, Any]]:
    free = figures[FREE]
    rows: list[dict[str, Any]] = []
    for name in (CLIPPED, ROUNDED, NOISED):
        row = _row(f"{what}, {name}: {case}", figures[name], unit, f"our own step {FREE}", free)
        rows.append({**row, "limit": round(limit * free, 3), "of_limit": round(figures[name] / (limit * free), 3)})
    peers = [name for name in (HOOKS, GHOST) if name in figures]
    return rows + [_row(f"{what}, {NOISED}: {case}", figures[NOISED], unit, peer, figures[peer]) for peer in peers]


def _row(case: str, ours: float, unit: str, peer: str, theirs: float) -> dict[str, Any]:
    figures = {"ours": round(ours, 3), "unit": unit, "peer": peer, "theirs": round(theirs, 3)}
    return {"case": case, **figures, "ratio": round(theirs / ours, 3)}


def _machine(opacus: bool) -> str:
    cores, python = multiprocessing.cpu_count(), platform.python_version()
    peer = f", opacus {version('opacus')}" if opacus else ""
    return f"{platform.machine()}, {cores} cores, Python {python}, torch {torch.__version__}{peer}"
