"""The mechanisms that the calculator knows, each as data: its options, what it spends of which unit, and what it promises.

Noised gradients (dp-sgd, and `solve` for one of its numbers), Laplace noise on words, noise in shares, and all ways to add
noise side by side. Everything is computed from public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
from scipy import special

from securetm.accounting.calculator.budget_report import (
    FALSE_POSITIVES,
    Course,
    Promise,
    Question,
    Spends,
    largest_by,
    report,
    some,
    surely_within,
)
from securetm.accounting.calculator.option_checks import (
    MOST_STEPS,
    RANGES,
    check,
    check_choice,
    check_delta,
    check_parties,
    refused,
)
from securetm.accounting.calculator.persons import PERSON, SEPARATE, People
from securetm.accounting.calibration import BudgetTooSmall, noise_for
from securetm.accounting.composition import total, within
from securetm.accounting.spends import Spend, positive, probability, whole
from securetm.contracts import Block, Cohort, Domain, Mechanism, Terms, Unit, unit_name
from securetm.data_classes import asdict, dataclass, replace
from securetm.errors import NotFound
from securetm.figures import Curve, Figure, ReportTable
from securetm.settings import from_table
from securetm.stages import Stages, Unwatched
from securetm.wording import colluding_parties, counted, downward, listed, upward, upward_share

Group = tuple[int, int, int]  # parties, how many must remain in a sum, how many may help an adversary
NoiseInShares = Callable[[float, str], Mechanism]  # the mechanism, by its noise multiplier and its distribution


# ---- noised gradients ----------------------------------------------------------------------------------------------

SAMPLINGS = ("poisson", "shuffled")
_LINES = {"poisson": "Poisson-sampled batches", "shuffled": "shuffled batches, provable"}


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
    unit: str = ""  # document or person; nothing: the person where the next two say how many documents one has
    documents_per_person: int | None = None  # at most
    persons: int | None = None
    counted: bool = False  # in documents

    def __post_init__(self) -> None:
        check("--documents", self.documents)
        check("--batch", self.batch)
        if self.batch > self.documents:
            instead = f"give at most {self.documents:,}: then every document is in every step"
            raise refused("--batch", self.batch, f"must be at most {self.documents:,}, the number of documents", instead)
        check("--epochs", self.epochs)
        if (steps := self.epochs / self.rate) > MOST_STEPS:
            problem = f"makes {steps:,.0f} steps, more than {MOST_STEPS:,}"
            raise refused("--epochs", self.epochs, problem, "give fewer epochs or larger batches")
        check("--noise", self.noise)
        check_delta(self.delta)
        check_choice("--sampling", self.sampling, SAMPLINGS)
        check("--tokens", self.tokens)
        self.people.check_batch(self.batch)

    @property
    def people(self) -> People:
        return People(self.unit, self.documents, self.documents_per_person, self.persons, self.counted)

    @property
    def rate(self) -> float:
        """The probability with which a document or a person is in a batch."""
        return self.batch / self.documents

    @property
    def steps(self) -> int:
        """Noised gradients; a part of a step is a step."""
        return max(1, math.ceil(self.epochs / self.rate - 1e-9))

    def title(self) -> str:
        return (
            f"{counted(self.documents, 'document')} in batches of {self.batch:,}, {counted(self.epochs, 'epoch')}, "
            f"noise {self.noise:.4g}"
        )

    def spends(self) -> Spends:
        """Poisson-sampled batches are amplified; shuffled batches count as one answer per epoch."""
        gaussian = GaussianDpEvent(self.noise)
        if self.sampling == "shuffled":
            return (Spend(gaussian, count=max(1, math.ceil(self.epochs - 1e-9))),)
        return (Spend(PoissonSampledDpEvent(self.rate, gaussian), count=self.steps),)

    def for_epochs(self, epochs: float) -> Spends:
        return replace(self, epochs=epochs).spends()

    def promise(self) -> Promise:
        unit = self.people.protected
        drawn: tuple[str, ...] = (
            f"every batch is a Poisson sample (each {unit} joins by a coin of its own, with probability {self.rate:.4g})",
            "nobody learns the coins or the noise",
        )
        if self.sampling == "shuffled":
            once = f"every {unit} takes part once an epoch, in a batch that no other {unit} decides"
            drawn = (once, "nobody learns the noise")
        clipped = "every document's gradient is clipped by itself"
        if unit == PERSON:
            clipped = "all gradients of a person are added up and clipped together"
        return Promise(
            unit,
            "anyone who sees the model and every noised gradient that it was trained with",
            f"any one {unit} was trained with",
            (*drawn, clipped, *self.people.assumptions, "whoever adds the noise is honest"),
        )

    def question(self, _: Stages) -> Question:
        """The training, and what it would spend by the other way to draw batches."""
        people, is_shuffled = self.people, self.sampling == "shuffled"
        ways = {way: total(replace(self, sampling=way).spends(), self.delta).epsilon for way in SAMPLINGS}
        at_least = least_epsilon_shuffled(max(1, math.ceil(1 / self.rate)), self.noise, self.delta)
        least, proved = downward(at_least), upward(ways["shuffled"])
        not_amplified = (
            f"Batches that are shuffled, not Poisson-sampled, get no amplification: epsilon = {proved} per {people.protected} "
            f"is what can be proved, one epoch alone spends at least {least}, and the Poisson formula, which is false here, "
            f"would say {upward(ways['poisson'])}."
        )
        poisson_only = (
            f"Only for Poisson samples. Batches from a shuffled list spend at least epsilon = {least} per {people.protected} "
            f"in one epoch alone; {proved} is what can be proved for them (--sampling shuffled)."
        )
        whole_document = f"A document of {self.tokens or 0:,} tokens is covered whole, and each of its words with it."
        return Question(
            f"DP-SGD, {self.title()}",
            self.promise(),
            self.spends(),
            self.delta,
            self.sampling,
            asdict(self) | {"unit": people.protected, "rate": self.rate, "steps": self.steps},
            people=people,
            along="epochs",
            courses=(Course(_LINES[self.sampling], self.for_epochs, self.epochs, is_shuffled),),
            warnings=(not_amplified if is_shuffled else None,),
            notes=some(
                *people.notes(),
                whole_document if self.tokens else None,
                None if is_shuffled or self.rate == 1 else poisson_only,
            ),
            found={"shuffled": {"at_least": at_least, "sound": ways["shuffled"], "poisson": ways["poisson"]}},
        )


def least_epsilon_shuffled(batches_per_epoch: int, noise: float, delta: float) -> float:
    """No epsilon below this holds for one epoch of shuffled batches with this noise multiplier. It is a bound from below only.

    The neighbours are those of Chua et al. 2024 (How private are DP-SGD implementations?): all other rows are opposite to the
    unit's, so that the sum of its batch is 2 above all other sums where it is present, and 1 above where its place is left
    empty; the event is that any sum passes a threshold. Each threshold gives a true bound; the best of a grid is taken.
    """
    batches, deviation = whole("batches per epoch", batches_per_epoch, least=1), positive("noise", noise)
    lost = probability("delta", delta)
    passing = np.linspace(-10 * deviation, 2 + 40 * deviation, 20_001)
    others = (batches - 1) * special.log_ndtr(passing / deviation)
    with_unit = -np.expm1(others + special.log_ndtr((passing - 2) / deviation))
    without = -np.expm1(others + special.log_ndtr((passing - 1) / deviation))
    seen = (with_unit > lost) & (without > 0)
    return max(0.0, float(np.max(np.log(with_unit[seen] - lost) - np.log(without[seen]), initial=-math.inf)))


# ---- which of its numbers fits an epsilon --------------------------------------------------------------------------

SOUGHT = {"noise": "Noise {:.4f}", "epochs": "{:.6g} epochs", "batch": "Batches of {:,}"}  # and how the title writes it
_LEAST_NOISE, _MOST_NOISE = 0.05, RANGES["--noise"].most
_STRIDE = 0.9  # loss distributions allow about a tenth less noise than Renyi divergences


@dataclass(frozen=True)
class Target:
    """What is sought of a training, and for which epsilon. The training itself has some number that is allowed in its place."""

    sought: str
    epsilon: float
    training: Training

    @classmethod
    def of(cls, sought: str, epsilon: float | None, given: Mapping[str, Any]) -> Self:
        """The target, where all is given of the training but what is sought."""
        check_choice("--for", sought, tuple(SOUGHT))
        if epsilon is None:
            raise refused("--epsilon", None, "", "give the epsilon that may be spent")
        check("--epsilon", epsilon)
        for name in SOUGHT:
            value = given.get(name)
            if value is not None and name == sought:
                instead = f"leave --{name} away, or seek something else than {name}"
                raise refused(f"--{name}", value, "must be left out, because it is what is sought", instead)
            if value is None and name != sought:
                raise refused(f"--{name}", None, "", f"give --{name}, or seek it with --for {name}")
        allowed = given.get("documents", 1) if sought == "batch" else 1
        training = from_table(Training, {**given, sought: allowed}, "budget solve")
        if sought == "batch" and training.sampling == "shuffled":
            instead = "shuffled batches are not amplified: no batch size changes epsilon"
            raise refused("--for", "batch", "cannot be solved for shuffled batches", instead)
        return cls(sought, epsilon, training)

    def solved(self, progress: Stages) -> Training:
        """The training with what was sought: it was composed, and fits."""
        progress.stage(f"the {self.sought} for epsilon = {upward(self.epsilon)}", 12)  # about as many as a search takes
        search = _Search(self, progress)
        return search.training_with({"noise": search.noise, "epochs": search.epochs, "batch": search.batch}[self.sought]())

    def question(self, progress: Stages) -> Question:
        training = self.solved(progress)
        asked, value = training.question(progress), getattr(training, self.sought)
        title = f"{SOUGHT[self.sought].format(value)}, for epsilon = {upward(self.epsilon)} per {training.people.protected}"
        solved = {"for": self.sought, "value": value, "target": self.epsilon}
        return replace(asked, title=f"{title}: {asked.title}", found={**asked.found, "solved": solved})


class _Search:
    """Finds what is sought by trying candidates, and shows how many were tried."""

    def __init__(self, target: Target, progress: Stages) -> None:
        self.target, self.training, self.progress, self.tried = target, target.training, progress, 0

    def noise(self) -> float:
        """The least noise that fits, rounded upwards to four places."""
        low, high = _LEAST_NOISE, _MOST_NOISE
        if not self._surely_fits(high):
            raise self._too_small(f"even noise {_MOST_NOISE:,.0f} spends more", "fewer epochs")
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._surely_fits(middle) else (middle, high)
        low = _STRIDE * high
        while low > _LEAST_NOISE and self._fits(low):
            low, high = _STRIDE * low, low
        least = noise_for(self._spends, self.target.epsilon, self.training.delta, max(low, _LEAST_NOISE), high)
        return math.ceil(least * 1e4) / 1e4

    def epochs(self) -> float:
        """As many steps, or passes of shuffled batches, as fit; written as epochs."""
        each = 1.0 if self.training.sampling == "shuffled" else self.training.rate
        highest = min(MOST_STEPS, round(1e6 / each))
        count = self._most(highest, each)
        if count == 0:
            raise self._too_small("a single step spends more", "more noise or smaller batches")
        if count == highest:
            problem = "is so large that epochs have no end"
            raise refused("--noise", self.training.noise, problem, "ask for a smaller epsilon or less noise")
        return count * each

    def batch(self) -> int:
        batch = self._most(self.training.documents)
        if batch == 0:
            raise self._too_small("even batches of one document spend more", "more noise or fewer epochs")
        return batch

    def training_with(self, found: float) -> Training:
        return replace(self.training, **dict[str, Any]({self.target.sought: found}))

    def _spends(self, candidate: float) -> Spends:
        self.tried += 1
        self.progress.step(self.tried)
        return self.training_with(candidate).spends()

    def _surely_fits(self, candidate: float) -> bool:
        """By Renyi divergences alone, which is quick: what they allow is allowed."""
        return surely_within(self.training_with(candidate).spends(), self.target.epsilon, self.training.delta)

    def _fits(self, candidate: float) -> bool:
        return within(self._spends(candidate), self.target.epsilon, self.training.delta)

    def _most(self, largest_of_all: int, each: float = 1.0) -> int:
        """The largest number of `each` that fits."""
        return largest_by(lambda n: self._surely_fits(n * each), lambda n: self._fits(n * each), largest_of_all)

    def _too_small(self, reason: str, instead: str) -> BudgetTooSmall:
        budget = f"{upward(self.target.epsilon)} per {self.training.people.protected}"
        return BudgetTooSmall(self.target.sought, budget, reason, f"allow a larger epsilon, or take {instead}")


def noise_or_epsilon(noise: float | None, epsilon: float | None, given: Mapping[str, Any]) -> Training | Target:
    """The training with that noise, or the question for the noise of that epsilon: one of both is given."""
    if noise is not None and epsilon is not None:
        raise refused("--epsilon", epsilon, "cannot be given beside --noise, which decides it", "give one of both")
    if epsilon is not None:
        return Target.of("noise", epsilon, given)
    if noise is None:
        raise refused("--noise", None, "", "give --noise, or --epsilon to have the least noise for it")
    return Training(noise=noise, **given)


# ---- noise on single words -----------------------------------------------------------------------------------------

UNIT = unit_name(Unit.WORD)
PUBLIC = "how many words of the public list each document and sentence has is known to everybody anyway"
BOUNDED_ROWS = (
    "A document is protected as a whole only if its rows are bounded and the noise is sized for that bound: `securetm "
    "budget dp-sgd` and `securetm budget distributed` count documents."
)


@dataclass(frozen=True)
class WordNoise:
    """Laplace noise on counts, where one occurrence moves one count by one and every release draws the noise anew."""

    epsilon_per_word: float  # of one occurrence, never of a document
    releases: int = 1
    words: tuple[int, ...] = (8, 60, 213)  # a tweet, a short news item, an article
    delta: float = 0.0

    def __post_init__(self) -> None:
        check("--epsilon-per-word", self.epsilon_per_word)
        check("--releases", self.releases)
        check_delta(self.delta, pure=True)
        for words in self.words:
            check("--words", words)

    def spends(self, releases: float) -> Spends:
        """One Laplace answer about an occurrence per release."""
        return (Spend(LaplaceDpEvent(1 / self.epsilon_per_word), count=round(releases)),)

    def of_document(self, words: int) -> float:
        """Epsilon of a document of so many words, by group privacy at delta 0."""
        return self.epsilon_per_word * self.releases * words

    def question(self, _: Stages) -> Question:
        promise = Promise(
            UNIT,
            "anyone who sees the noised counts of every release",
            "any one occurrence of a word is in a document",
            (
                "every occurrence moves one count by one",
                "every release draws fresh noise that nobody learns",
                "whoever adds the noise is honest",
            ),
        )
        each = f"epsilon = {upward(self.epsilon_per_word)} per word occurrence and release"
        return Question(
            f"Laplace noise, {each}, {counted(self.releases, 'release')}",
            promise,
            self.spends(self.releases),
            self.delta,
            "none",
            asdict(self) | {"scale": 1 / self.epsilon_per_word},
            along="releases",
            courses=(Course("noised counts", self.spends, self.releases, whole=True),) if self.releases > 1 else (),
            notes=(BOUNDED_ROWS,),
            **self.for_documents(),
        )

    def for_documents(self) -> dict[str, Any]:
        """What that is for whole documents: a warning, a table, a figure, and numbers."""
        bounds = {words: self.of_document(words) for words in self.words}
        rows = []
        for words, epsilon in bounds.items():
            # the best true-positive rate under pure differential privacy (Kairouz, Oh and Viswanath 2015)
            rate = min(FALSE_POSITIVES * math.exp(min(epsilon, 700.0)), 1 - (1 - FALSE_POSITIVES) * math.exp(-epsilon))
            rows.append((words, epsilon, 2 * epsilon, upward_share(rate)))
        columns = ("words", "epsilon per document", "if it is replaced", "found at 1 % false")
        caption = "By group privacy at delta = 0: words x releases x epsilon; replacing every word removes one and adds one."
        lengths = sorted({1, *self.words, max((*self.words, 2))})
        points = ((0.0, 0.0), *((float(n), self.of_document(n)) for n in lengths))
        length = Figure(
            "epsilon of a document against its length",
            "words in the document",
            "epsilon per document",
            (Curve("a document, by group privacy", points),),
        )
        return {
            "warnings": (sentence_whole(self.epsilon_per_word * self.releases, self.words),),
            "tables": (ReportTable("What that is for a whole document", columns, tuple(rows), caption),),
            "plots": (length,),
            "found": {"documents": [{"words": n, "epsilon": one, "replaced": 2 * one} for n, one in bounds.items()]},
        }


def word_noise(
    epsilon_per_word: float | None, scale: float | None, releases: int, words: tuple[int, ...], delta: float
) -> WordNoise:
    """By epsilon or by the scale of the noise, one of both."""
    if epsilon_per_word is None and scale is None:
        raise refused("--epsilon-per-word", None, "give it or --scale", "--epsilon-per-word 8 is --scale 0.125")
    if epsilon_per_word is not None and scale is not None:
        instead = "give one of both: --epsilon-per-word 8 is --scale 0.125"
        raise refused("--scale", scale, "cannot be given beside --epsilon-per-word", instead)
    check("--scale", scale)
    return WordNoise((epsilon_per_word if scale is None else 1 / scale) or 0.0, releases, words, delta)


def sentence_whole(epsilon: float, lengths: tuple[int, ...] = WordNoise.words) -> str:
    """The warning beside every epsilon of a word occurrence: what it is for whole documents, at delta 0."""
    parts = tuple(f"{upward(epsilon * words)} per document of {counted(words, 'word')}" for words in lengths)
    return (
        f"This budget is one per word occurrence, not per document: epsilon = {upward(epsilon)} per word occurrence is "
        f"epsilon = {listed(parts)}, by group privacy."
    )


# ---- noise in shares -----------------------------------------------------------------------------------------------

DISTRIBUTIONS = {"discrete_gaussian": "discrete Gaussian", "skellam": "Skellam"}
HOW_SHARES_COUNT = {
    "discrete_gaussian": (
        "Sums of discrete Gaussian shares are accounted as one Gaussian of nearly the same variance, and where they are too "
        "narrow for that by the Renyi bound of Kairouz, Liu and Steinke (2021)."
    ),
    "skellam": (
        "Sums of Skellam shares have no privacy loss distribution: the vector bound of Agarwal, Kairouz and Liu (2021) is "
        "composed as Renyi divergences."
    ),
}


@dataclass(frozen=True)
class Shares:
    """Noise in shares under a hidden sum, sized so that `noise` is left when as many as allowed drop out and collude.

    The parties take off what is there for those who may drop out, if they do not.
    """

    parties: int
    threshold: int
    colluding: int
    noise: float  # deviation that honest shares leave in the smallest sum, over the bound on one document's row
    l2: float  # that bound, in steps of the grid
    dimension: int
    rate: float
    rounds: int
    delta: float
    distribution: str = "discrete_gaussian"
    documents: int | None = None
    people: People = SEPARATE

    def __post_init__(self) -> None:
        check_parties(self.parties, self.threshold, self.colluding)
        for name in ("noise", "l2", "dimension", "rate", "rounds", "documents"):
            check(f"--{name}", getattr(self, name))
        check_delta(self.delta)
        check_choice("--distribution", self.distribution, tuple(DISTRIBUTIONS))

    @property
    def honest(self) -> int:
        """Shares that are surely in the sum and unknown to the adversary."""
        return self.threshold - self.colluding

    @property
    def share(self) -> float:
        """Standard deviation of one party's share before anything is taken off, in steps of the grid."""
        return self.noise * self.sensitivity / math.sqrt(self.honest)

    @property
    def sensitivity(self) -> float:
        """The bound once rows are summed and rounded: each coordinate may move by two steps more."""
        return self.l2 + 2 * math.sqrt(self.dimension)

    def left(self, answering: int, colluding: int) -> float:
        """Deviation over the bound of the noise that colluding parties do not know, in a sum over those who answer.

        Only for as many as all parties, or as the threshold: in between the noise of the next smaller measured size stays.
        """
        return self.noise * math.sqrt((answering - colluding) / (answering - self.colluding))

    def spend(self, mechanism: NoiseInShares, left: float, rounds: float) -> Spend:
        """The spend of so many sums with so much unknown noise, as the mechanism itself accounts for it."""
        terms = Terms(
            (Block("row", (self.dimension,)),),
            domain=Domain.INTEGER,
            bits=64,
            grid=1.0,
            sampling=self.rate,
            l2=self.sensitivity,
            l1=self.l2 * self.dimension**0.5 + 2.0 * self.dimension,
            linf=self.l2 + 2,
        )
        cohort = Cohort(b"", 0, tuple(map(str, range(self.parties))), self.threshold, self.colluding)
        noise = mechanism(left, self.distribution)
        noised = noise.admit(terms, cohort)
        return Spend(noise.event(noised, cohort), noise.failure_probability(noised, cohort), math.ceil(rounds))

    def promise(self) -> Promise:
        colluding, unit = self.colluding, self.people.protected
        beside = f", {colluding_parties(colluding)} among them" if colluding else ""
        helps = f"at most {colluding} of them {'helps' if colluding == 1 else 'help'} the adversary"
        coin = f"a {unit} joins each round by a coin of its own, with probability {self.rate:.4g}, that only its party knows"
        return Promise(
            unit,
            f"the coordinator and anyone who sees the sums and the model{beside}",
            f"any one {unit} of an honest party was in its sums",
            (
                *((coin,) if self.rate < 1 else ()),
                f"nothing is opened but sums over at least {self.threshold} of the {self.parties} parties",
                helps if colluding else "no party helps the adversary",
                "the others add their shares as agreed",
                *self.people.assumptions,
            ),
        )

    def question(self, mechanism: NoiseInShares) -> Question:
        """What the shares spend, guaranteed and in better cases."""

        def course(name: str, left: float) -> Course:
            return Course(name, lambda rounds: (self.spend(mechanism, left, rounds),), self.rounds, whole=True)

        cases, best = self._cases(mechanism), self.left(self.parties, 0)
        honest = (course(f"all {self.parties} honest", best),) if best / self.noise > 1 else ()
        surplus = (
            f"Sized for {counted(self.honest, 'honest share')} of {self.parties}: if everybody answers, what is there for "
            "those who may drop out is taken off the sum, and the sum carries "
            f"{best / self.noise:.2f} times the noise that it would need if nobody dropped out and nobody colluded."
        )
        rounding = 2 * math.sqrt(self.dimension)
        coarse = (
            f"Rounding adds up to {rounding:,.0f} steps to a row bounded by {self.l2:,.0f} steps, and the noise grows with "
            "them; a finer grid (a larger --l2) makes that small."
        )
        columns = ("case", "answer", "collude", "noise in the sum", "unknown to them", f"epsilon per {self.people.protected}")
        rows = tuple(
            (one["case"], one["answering"], one["colluding"], near(one["noise_in_sum"]), near(one["noise"]), one["epsilon"])
            for one in cases
        )
        bound = f"the bound on one {self.people.protected}'s row ({self.l2:,.0f} steps)"
        caption = f"Noise as a standard deviation over {bound}; a party's share has one of {near(self.share)} steps."
        return Question(
            f"{DISTRIBUTIONS[self.distribution]} shares, {self.threshold} of {self.parties} parties remain, "
            f"{self.colluding} may collude, {counted(self.rounds, 'round')}",
            self.promise(),
            (self.spend(mechanism, self.noise, self.rounds),),
            self.delta,
            "poisson" if self.rate < 1 else "none",
            {name: value for name, value in asdict(self).items() if name != "people"}
            | {"share_deviation": self.share, "honest_shares": self.honest},
            people=self.people,
            along="rounds",
            courses=(course("guaranteed", self.noise), *honest),
            warnings=(coarse if rounding >= 0.05 * self.l2 else None,),
            notes=(surplus, HOW_SHARES_COUNT[self.distribution], *self.people.notes()),
            tables=(ReportTable("The price of dropout and collusion", columns, rows, caption),),
            found={"cases": cases},
        )

    def _cases(self, mechanism: NoiseInShares) -> list[dict[str, Any]]:
        """The cases from the guarantee to the best one. Of equal cases, the better one's name is kept."""
        n, t, c = self.parties, self.threshold, self.colluding
        named = {(t, c): "guaranteed", (t, 0): "nobody colludes", (n, c): "nobody drops out", (n, 0): "neither"}
        found = []
        for (answering, colluding), name in named.items():
            left = self.left(answering, colluding)
            case = {"case": name, "answering": answering, "colluding": colluding, "honest_shares": answering - colluding}
            epsilon = total((self.spend(mechanism, left, self.rounds),), self.delta).epsilon
            found.append(case | {"noise": left, "noise_in_sum": self.left(answering, 0), "epsilon": epsilon})
        return found


def in_shares(asked: Question, group: Group | None) -> Question:
    """The same question, with how large the shares of its noise are where parties add it."""
    if group is None:
        return asked
    check_parties(*group)
    (parties, threshold, colluding), noise = group, float(asked.settings["noise"])
    rows = (
        ("the share of each party", near(noise / math.sqrt(threshold - colluding))),
        (f"unknown to an adversary, {counted(parties - threshold, 'party', 'parties')} missing", near(noise)),
        ("in the sum, nobody missing", near(noise * math.sqrt(parties / (parties - colluding)))),
    )
    helped = f"{colluding} of them may help an adversary" if colluding else "none of them helps an adversary"
    caption = f"Standard deviation over the bound on a row. {threshold} of {parties} parties must remain in a sum; {helped}."
    table = ReportTable("The noise in shares", ("", "noise"), rows, caption)
    named = dict(zip(("parties", "threshold", "colluding"), group, strict=True))
    return replace(asked, settings=asked.settings | named, tables=(*asked.tables, table))


def near(value: float) -> str:
    """A deviation as tables write it."""
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


# ---- all ways to add noise, side by side ---------------------------------------------------------------------------


def compared(
    asked: Training | Target, group: Group, dimension: int, l2: float, mechanism: NoiseInShares, progress: Stages
) -> Question:
    """One training, noised by the opener, by each party, or in shares: epsilon against each adversary, and the noise."""
    check_parties(*group)
    training = asked.solved(progress) if isinstance(asked, Target) else asked

    def shares(threshold: int, colluding: int) -> Shares:
        numbers = (training.noise, l2, dimension, training.rate, training.steps, training.delta)
        return Shares(parties, threshold, colluding, *numbers, documents=training.documents, people=training.people)

    parties, threshold, colluding = group
    guarded = shares(threshold, colluding)
    if training.sampling != "poisson":
        problem = "must be poisson, because only Poisson samples are amplified under all of them"
        raise refused("--sampling", training.sampling, problem, "leave --sampling away")
    found = _side_by_side(training, guarded, shares(parties, 0), mechanism, progress)
    each = guarded.spend(mechanism, guarded.noise, 1)
    rows = tuple(
        (row["mechanism"], near(row["noise_in_sum"]), _bound(row["coordinator"]), _bound(row["reader"]), row["trusted"])
        for row in found
    )
    columns = (
        "mechanism",
        "noise in the sum",
        "epsilon against the coordinator",
        "against model readers",
        "trusted with the noise",
    )
    caption = (
        f"Epsilon per {training.people.protected}, where as many as may drop out and collude do. Noise as a standard deviation "
        "over the bound on a row, with all of them."
    )
    shown = {"parties": parties, "threshold": threshold, "colluding": colluding, "dimension": dimension, "l2": l2}
    return Question(
        f"{counted(parties, 'party', 'parties')}, {training.title()}",
        training.promise(),
        training.spends(),
        training.delta,
        "poisson",
        asdict(training) | shown,
        people=training.people,
        along="epochs",
        courses=(
            Course("central, or local", training.for_epochs, training.epochs),
            Course("distributed", lambda n: (replace(each, count=replace(training, epochs=n).steps),), training.epochs),
        ),
        notes=(HOW_SHARES_COUNT["discrete_gaussian"], *training.people.notes()),
        tables=(ReportTable("Who adds the noise", columns, rows, caption),),
        found={"mechanisms": found},
    )


def _side_by_side(
    training: Training, guarded: Shares, ideal: Shares, mechanism: NoiseInShares, progress: Stages
) -> list[dict[str, Any]]:
    progress.stage("epsilon by mechanism", 6)
    done = iter(range(1, 7))

    def epsilon_of(spend: Spend) -> float:
        epsilon = total((spend,), training.delta).epsilon
        progress.step(next(done))
        return epsilon

    def gaussian(noise: float) -> float:
        return epsilon_of(Spend(PoissonSampledDpEvent(training.rate, GaussianDpEvent(noise)), count=training.steps))

    def shared(shares: Shares) -> float:
        return epsilon_of(shares.spend(mechanism, shares.noise, shares.rounds))

    s, n = training.noise, guarded.parties
    root, left = math.sqrt(n), math.sqrt(guarded.honest)
    base, sized, best = gaussian(s), shared(guarded), shared(ideal)
    remain = f"distributed, {guarded.threshold} of {n} may remain, {guarded.colluding} may collude"
    trusted = counted(guarded.honest, "honest party", "honest parties")
    rows = [
        ("central", s, None, base, "whoever opens the sum"),
        ("local, noise of its own at each party", s * root, base, gaussian(s * left), "nobody else"),
        ("local, the same noise in the sum", s, gaussian(s / root), gaussian(s * left / root), "nobody else"),
        ("distributed, nobody drops out or colludes", s, best, best, "all other parties"),
        (remain, guarded.left(n, 0), sized, sized, trusted),
    ]
    names = ("mechanism", "noise_in_sum", "coordinator", "reader", "trusted")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _bound(epsilon: float | None) -> str:
    return "no bound" if epsilon is None else upward(epsilon)


# ---- for Python ----------------------------------------------------------------------------------------------------

QUESTIONS: Mapping[str, type[Training | WordNoise]] = {"dp-sgd": Training, "laplace": WordNoise}


def budget(question: str = "dp-sgd", **settings: Any) -> dict[str, Any]:
    """What is spent, allowed or needed: `budget(documents=19000, batch=190, epochs=10, noise=1.0, delta=1e-5)["epsilon"]`.

    `question` is dp-sgd, solve (with sought="noise", "epochs" or "batch") or laplace; the settings are those of the command.
    """
    asked: Training | Target | WordNoise
    if question == "solve":
        sought, epsilon = settings.pop("sought", ""), settings.pop("epsilon", None)
        asked = Target.of(sought, epsilon, settings)
    elif question in QUESTIONS:
        asked = from_table(QUESTIONS[question], settings, f"budget {question}")
    else:
        raise NotFound("question", question, (*QUESTIONS, "solve"))
    return report(asked.question(Unwatched()), Unwatched()).record()
