"""Answers what noise on single word occurrences spends, and what that is for a document. It reads no document.

iFTM adds Laplace noise to the count of every word. Its epsilon is that of one occurrence, never of a document.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

from dp_accounting import LaplaceDpEvent

from securetm.accounting.calculator.budget_report import (
    FALSE_POSITIVES,
    BudgetReport,
    Plot,
    PlotLine,
    Promise,
    ReportTable,
    epsilon_against,
    unit_name,
)
from securetm.accounting.calculator.composed_report import Spends, composed, curve
from securetm.accounting.calculator.option_checks import check, check_delta, refused
from securetm.accounting.spends import Spend
from securetm.contracts import Unit
from securetm.stages import Stages
from securetm.wording import counted, listed, upward, upward_share

UNIT = unit_name(Unit.WORD)
PUBLIC = "how many words of the public list each document and sentence has is known to everybody anyway"
_BOUNDED_ROWS = (
    "A document is protected as a whole only if its rows are bounded and the noise is sized for that bound: `securetm "
    "budget dp-sgd` and `securetm budget distributed` count documents."
)


@dataclass(frozen=True)
class WordNoise:
    """Laplace noise on counts, where one occurrence moves one count by one and every release draws the noise anew."""

    epsilon_per_word: float
    releases: int = 1
    words: tuple[int, ...] = (8, 60, 213)  # a tweet, a short news item, an article
    delta: float = 0.0

    def __post_init__(self) -> None:
        check("--epsilon-per-word", self.epsilon_per_word)
        check("--releases", self.releases)
        check_delta(self.delta, pure=True)
        for words in self.words:
            check("--words", words)

    @classmethod
    def of(
        cls, epsilon_per_word: float | None, scale: float | None, releases: int, words: tuple[int, ...], delta: float
    ) -> WordNoise:
        """By epsilon or by the scale of the noise, one of both."""
        if epsilon_per_word is None and scale is None:
            raise refused("--epsilon-per-word", None, "give it or --scale", "--epsilon-per-word 8 is --scale 0.125")
        if epsilon_per_word is not None and scale is not None:
            instead = "give one of both: --epsilon-per-word 8 is --scale 0.125"
            raise refused("--scale", scale, "cannot be given beside --epsilon-per-word", instead)
        check("--scale", scale)
        epsilon = epsilon_per_word if scale is None else 1 / scale
        return cls(epsilon or 0.0, releases, words, delta)

    def spends(self) -> Spends:
        """One Laplace answer about an occurrence per release."""
        return (Spend(LaplaceDpEvent(1 / self.epsilon_per_word), count=self.releases),)

    def of_document(self, words: int) -> float:
        """Epsilon of a document of so many words, by group privacy at delta 0."""
        return self.epsilon_per_word * self.releases * words

    def promise(self) -> Promise:
        """What the figures mean, and what they assume."""
        return Promise(
            UNIT,
            "anyone who sees the noised counts of every release",
            "any one occurrence of a word is in a document",
            (
                "every occurrence moves one count by one",
                "every release draws fresh noise that nobody learns",
                "whoever adds the noise is honest",
            ),
        )

    def report(self, progress: Stages) -> BudgetReport:
        """What the noise spends per occurrence, and what that is for whole documents."""
        documents = [{"words": n, "epsilon": self.of_document(n), "replaced": 2 * self.of_document(n)} for n in self.words]
        return composed(
            f"Laplace noise, epsilon = {upward(self.epsilon_per_word)} per word occurrence and release, "
            f"{counted(self.releases, 'release')}",
            self.promise(),
            self.spends(),
            self.delta,
            sampling="none",
            settings=asdict(self) | {"scale": 1 / self.epsilon_per_word},
            warnings=(sentence_whole(self.epsilon_per_word * self.releases, self.words),),
            notes=(_BOUNDED_ROWS,),
            tables=(self._documents(),),
            plots=(*self._by_release(progress), self._by_length()),
            found={"documents": documents},
        )

    def _documents(self) -> ReportTable:
        rows = tuple((n, self.of_document(n), 2 * self.of_document(n), _reach(self.of_document(n))) for n in self.words)
        columns = ("words", "epsilon per document", "if it is replaced", "found at 1 % false")
        caption = "By group privacy at delta = 0: words x releases x epsilon; replacing every word removes one and adds one."
        return ReportTable("What that is for a whole document", columns, rows, caption)

    def _by_release(self, progress: Stages) -> tuple[Plot, ...]:
        if self.releases == 1:
            return ()

        def spends(releases: float) -> Spends:
            return replace(self, releases=round(releases)).spends()

        line = curve("noised counts", spends, self.releases, self.delta, progress, whole=True)
        return (epsilon_against("releases", UNIT, line),)

    def _by_length(self) -> Plot:
        lengths = sorted({1, *self.words, max((*self.words, 2))})
        points = ((0.0, 0.0), *((float(n), self.of_document(n)) for n in lengths))
        line = PlotLine("a document, by group privacy", points)
        return Plot("epsilon of a document against its length", "words in the document", "epsilon per document", (line,))


def sentence_whole(epsilon: float, lengths: tuple[int, ...] = WordNoise.words) -> str:
    """The warning beside every epsilon of a word occurrence: what it is for whole documents, at delta 0."""
    parts = tuple(f"{upward(epsilon * words)} per document of {counted(words, 'word')}" for words in lengths)
    return (
        f"This budget is one per word occurrence, not per document: epsilon = {upward(epsilon)} per word occurrence is "
        f"epsilon = {listed(parts)}, by group privacy."
    )


def _reach(epsilon: float) -> str:
    """The best true-positive rate under pure differential privacy (Kairouz, Oh and Viswanath 2015)."""
    rate = min(FALSE_POSITIVES * math.exp(min(epsilon, 700.0)), 1 - (1 - FALSE_POSITIVES) * math.exp(-epsilon))
    return upward_share(rate)
