"""What a training by noised gradients (DP-SGD) spends, from public numbers alone. It prints nothing and reads no document."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from securetm.accounting.calculator.budget_report import BudgetReport, Plot, Promise, sentence_delta
from securetm.accounting.calculator.composed_report import Progress, Spends, curve, figures, places, replaced
from securetm.accounting.calculator.option_checks import check, check_batch, check_choice, check_delta, check_epochs
from securetm.accounting.composition import total
from securetm.accounting.shuffling import least_epsilon_shuffled
from securetm.accounting.spends import Spend
from securetm.wording import counted, upward

SAMPLINGS = ("poisson", "shuffled")


@dataclass(frozen=True)
class Training:
    """A training by noised, clipped gradients; the documents are those of all parties, or those of one."""

    documents: int
    batch: int
    epochs: float
    noise: float
    delta: float
    sampling: str = "poisson"
    tokens: int | None = None  # in the longest document; a document's promise covers them all

    def __post_init__(self) -> None:
        check_batch(self.batch, self.documents)
        check_epochs(self.epochs, self.epochs / self.rate)
        check("--noise", self.noise)
        check_delta(self.delta)
        check_choice("--sampling", self.sampling, SAMPLINGS)
        check("--tokens", self.tokens)

    @property
    def rate(self) -> float:
        """The probability with which a document is in a batch."""
        return self.batch / self.documents

    @property
    def steps(self) -> int:
        """Noised gradients; a part of a step is a step."""
        return max(1, math.ceil(self.epochs / self.rate - 1e-9))

    def spends(self) -> Spends:
        """Poisson-sampled batches are amplified; of shuffled ones only that a document takes part once an epoch."""
        gaussian = GaussianDpEvent(self.noise)
        if self.sampling == "shuffled":
            return (Spend(gaussian, count=max(1, math.ceil(self.epochs - 1e-9))),)
        return (Spend(PoissonSampledDpEvent(self.rate, gaussian), count=self.steps),)

    def promise(self) -> Promise:
        """What the figures mean."""
        return Promise(
            "document",
            "anyone who sees the model and every noised gradient that it was trained with",
            "any one document was trained with",
            (
                *self._drawn(),
                "every document's gradient is clipped by itself",
                "whoever adds the noise is honest",
            ),
        )

    def _drawn(self) -> tuple[str, str]:
        """What the figures assume of the batches."""
        if self.sampling == "shuffled":
            return (
                "every document takes part once an epoch, in a batch that no other document decides",
                "nobody learns the noise",
            )
        coins = f"each document joins by a coin of its own, with probability {self.rate:.4g}"
        return f"every batch is a Poisson sample ({coins})", "nobody learns the coins or the noise"


def dp_sgd(training: Training, progress: Progress) -> BudgetReport:
    """The sheet of one training."""
    title = (
        f"DP-SGD, {counted(training.documents, 'document')} in batches of {training.batch:,}, "
        f"{counted(training.epochs, 'epoch')}, noise {training.noise:.4g}"
    )
    shuffled = shuffling(training)
    sheet = figures(
        title,
        training.promise(),
        training.spends(),
        training.delta,
        sampling=training.sampling,
        settings=asdict(training) | {"rate": training.rate, "steps": training.steps},
        warnings=tuple(
            filter(None, (sentence_delta(training.delta, training.documents), _shuffled_warning(training, shuffled)))
        ),
    )
    known = tuple(filter(None, (*_about(training, sheet.epsilon), _shuffled_note(training, shuffled))))
    return replace(sheet, notes=known, plots=(_by_epoch(training, sheet, progress),), found={"shuffled": shuffled})


def shuffling(training: Training) -> dict[str, float]:
    """What the same training spends by each way to draw batches."""
    ways = {way: total(replace(training, sampling=way).spends(), training.delta).epsilon for way in SAMPLINGS}
    least = least_epsilon_shuffled(max(1, math.ceil(1 / training.rate)), training.noise, training.delta)
    return {"at_least": least, "sound": ways["shuffled"], "poisson": ways["poisson"]}


def _shuffled_warning(training: Training, shuffled: dict[str, float]) -> str | None:
    if training.sampling != "shuffled":
        return None
    return (
        f"Batches that are shuffled, not Poisson-sampled, get no amplification: epsilon = {upward(shuffled['sound'])} "
        "per document is what "
        f"can be proved, one epoch alone spends at least {shuffled['at_least']:.2f}, and the Poisson formula, which is "
        "false here, "
        f"would say {upward(shuffled['poisson'])}."
    )


def _shuffled_note(training: Training, shuffled: dict[str, float]) -> str | None:
    if training.sampling == "shuffled" or training.rate == 1:
        return None
    return (
        f"Only for Poisson samples. Batches from a shuffled list spend at least epsilon = {shuffled['at_least']:.2f} "
        "per document in one epoch "
        f"alone; {upward(shuffled['sound'])} is what can be proved for them (--sampling shuffled)."
    )


def _about(training: Training, epsilon: float) -> tuple[str | None, ...]:
    covered = (
        f"A document of {training.tokens:,} tokens is covered whole, and each of its words with it."
        if training.tokens
        else None
    )
    return (
        replaced(epsilon, training.delta, "document"),
        "This counts documents: a person who wrote k of them is protected by k times this epsilon only. Name persons "
        "in the corpus, "
        "and count rows per person, if documents are not independent people.",
        covered,
    )


def _by_epoch(training: Training, sheet: BudgetReport, progress: Progress) -> Plot:
    def spends_at(way: str) -> Callable[[float], Spends]:
        return lambda epochs: replace(training, epochs=epochs, sampling=way).spends()

    along = places(training.epochs, whole=training.sampling == "shuffled")
    lines = [curve(_NAMED[training.sampling], spends_at(training.sampling), along, training.delta, progress)]
    return Plot("epsilon against epochs", "epochs", "epsilon per document", tuple(lines), (training.epochs, sheet.epsilon))


_NAMED = {"poisson": "Poisson-sampled batches", "shuffled": "shuffled batches, provable"}
