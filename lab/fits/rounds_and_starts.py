"""How `lda-vi` should spend a budget: the fits of the rules for its rounds, and for a start by `moments`.

`rounds-rule` fits how many rounds predict best after a public start, `rounds-without-vectors` after a plain start or one by
pairs of words, `start-rule` which share of the budget the question about pairs should have. They are fitted on synthetic
documents and on corpora on which settings may be chosen. All documents are in one place, and the noise is a plain Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import log, sqrt
from pathlib import Path

import numpy as np

from lab.documents import by_frequencies, held_out, vague_vectors
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row, told
from lab.research_corpora import M10, PUBLIC, SMS, research_corpus
from lab.synthetic_documents import LdaNodes, lda_nodes
from lab.training import exact_sum, noised, trained
from securetm.contracts import Array, Public
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties
from securetm.corpus.public_words import public_shares
from securetm.corpus.tokeniser import Tokeniser, prune
from securetm.corpus.word_vectors import GLOVE, read_vectors
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.moments import LONGEST, TopicsBefore
from securetm.models.public_knowledge import PublicKnowledge, public_knowledge
from securetm.plans.rules import (
    USUAL_START,
    noise_of_one_round,
    noise_of_start,
    rounds_for,
    rounds_of_signal,
    signal,
    totals_for,
)

DELTA, RADIUS, TOPICS, WORDS = 1e-5, 2.0, 20, 1_000
EPSILONS = (1.0, 3.0, 8.0)
SYNTHETIC, FEW = "synthetic", 2_000
SIZES, ROUNDS = (1_000, 3_000, 8_000), (1, 2, 3, 4, 6, 8)
EACH = tuple(round(0.01 * 1.25**n, 4) for n in range(16))  # rounds for each unit of the signal, that are tried
MODEL = VariationalLDA(n_topics=TOPICS, eta=1.0, repeats=1, passes=20)
SETTINGS: Row = {"topics": TOPICS, "words": WORDS, "delta": DELTA, "radius": RADIUS}


@dataclass(frozen=True)
class KnownWords:
    """Documents to train on, documents to predict, and what is known of their words before."""

    name: str
    train: Corpus
    held: Corpus
    public: PublicKnowledge

    def held_out(
        self,
        model: VariationalLDA,
        epsilon: float,
        rounds: int,
        seed: int,
        first: float = 0.0,
        begun: Public | None = None,
        *,
        plain: bool = False,
    ) -> float:
        """The log-likelihood of a held-out word after so many rounds, with the noise that the share `first` of a budget leaves.

        They begin with what is public, or with what an answer that had this share says; plainly, at random.
        """
        rng, words = np.random.default_rng([seed, rounds]), self.train.vocabulary
        deviation = noise_of_one_round(epsilon, DELTA) * (rounds / (1.0 - first)) ** 0.5 * RADIUS  # Gaussians compose as one
        state = model.start(words, rng) if plain else model.started(words, begun or self.public, rng)
        return held_out(model, trained(model, self.train, state, rounds, RADIUS, deviation, rng), self.held)

    def facts(self, epsilon: float, noise: float) -> Row:
        """What a rule reads of it, with that noise in one round."""
        size, words = len(self.train), len(self.train.vocabulary)
        return {"documents": size, "words": words, "epsilon": epsilon, "signal": round(signal(size, TOPICS, words, noise), 2)}

    def outcomes(self, found: Mapping[int, float]) -> Row:
        """The log-likelihood of a held-out word by the number of rounds, beside that of word frequencies."""
        by_rounds = {str(rounds): round(value, 4) for rounds, value in found.items()}
        return {"held_out": by_rounds, "frequencies": round(self.frequencies, 4)}

    @property
    def frequencies(self) -> float:
        return by_frequencies(self.train, self.held)


# ---- rounds after a public start -------------------------------------------------------------------------------------


def rounds_rule(seeds: Sequence[int] = (0,), on_progress: OnProgress | None = None) -> Row:
    """Every case with every epsilon and number of rounds, the fit on the synthetic ones, and what the rule gives up on each."""
    makers: dict[str, Callable[[], KnownWords]] = {f"{SYNTHETIC} {size}": partial(synthetic, size) for size in SIZES}
    makers |= {**CORPORA, **FEWER}
    cases = {name: make() for name, make in makers.items()}  # a corpus that is not here is refused now
    rows = list[Row]()
    for (name, case), epsilon in told(list(product(cases.items(), EPSILONS)), on_progress):
        found = {n: _mean([case.held_out(MODEL, epsilon, n, seed) for seed in seeds]) for n in ROUNDS}
        rows.append({"corpus": name, **case.facts(epsilon, noise_of_one_round(epsilon, DELTA)), **case.outcomes(found)})
    return judged_rounds(rows, len(seeds))


def judged_rounds(rows: Sequence[Row], seeds: int) -> Row:
    """The result: the fit, and what its rule gives up on each row."""
    each, most = fitted_rounds(rows)
    found = {"rounds_each": each, "most_rounds": most, "rows": [_judged(row, each, most) for row in rows]}
    return {"reproduction": "rounds-rule", **SETTINGS, "seeds": seeds, **found}


def fitted_rounds(rows: Sequence[Row], rounds: Sequence[int] = ROUNDS, each: Sequence[float] = EACH) -> tuple[float, int]:
    """The rule's two numbers that give up least on the fitted corpora; of equal ones, those with the fewest rounds."""
    chosen = [row for row in rows if row["corpus"].removeprefix(f"{FEW:,} of ") in FITTED]
    pairs = [(one, most) for most in rounds for one in each]

    def cost(pair: tuple[float, int]) -> tuple[float, int, float]:
        return (round(_mean([given_up(row, *pair) for row in chosen]), 3), pair[1], pair[0])

    return min(pairs, key=cost)


def given_up(row: Row, each: float, most: int, of: str = "held_out") -> float:
    """How much less of a measure there is after the rule's rounds than after the best number of those tried."""
    found = {int(n): value for n, value in row[of].items()}
    asked = rounds_of_signal(row["signal"], each, most)
    tried = sorted(found)
    best: float = max(found.values())
    return best - float(np.interp(log(asked), [log(n) for n in tried], [found[n] for n in tried]))


def _judged(row: Row, each: float, most: int) -> Row:
    lost = round(given_up(row, each, most), 4)
    return {**row, "rounds": rounds_of_signal(row["signal"], each, most), "given_up": lost}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


# ---- the share of a start by moments: share 0 is the public start, with all of the budget for its rounds ---------------

SHARES = (0.0, 0.25, 0.5, 0.75)
MOST_DOCUMENTS = 4_000  # of a corpus: more take long, and are clearer than what a rule is needed for
STARTED = VariationalLDA(n_topics=TOPICS, **VariationalLDA.budget_defaults)


@dataclass(frozen=True)
class AskedFirst:
    """Documents whose pairs of words are asked for before the training."""

    known: KnownWords
    vectors: bool = True  # whether topics are found beside public vectors of words

    @cached_property
    def _pairs(self) -> Mapping[str, Array]:
        question = TopicsBefore(TOPICS).question(len(self.known.train.vocabulary), 0.0)
        return exact_sum(question, self.known.train, np.random.default_rng(0), LONGEST)

    def begun(self, epsilon: float, share: float, seed: int) -> Public | None:
        """What the noised answer says; nothing where it has no share."""
        if not share:
            return None
        answer = noised(self._pairs, noise_of_start(epsilon, DELTA, share), np.random.default_rng([seed, 1]))
        return TopicsBefore(TOPICS).found(self.known.train.vocabulary, answer, self.known.public if self.vectors else None)

    def row(self, epsilon: float, shares: Sequence[float], seeds: Sequence[int]) -> Row:
        """The log-likelihood of a held-out word by share, each with as many rounds as the rule for rounds says."""
        size, words = len(self.known.train), len(self.known.train.vocabulary)
        found, rounds = dict[str, float](), dict[str, int]()
        for share in shares:
            asked = rounds_for(size, TOPICS, words, noise_of_one_round(epsilon, DELTA) / (1.0 - share) ** 0.5)
            each = [self.known.held_out(STARTED, epsilon, asked, s, share, self.begun(epsilon, share, s)) for s in seeds]
            found[f"{share:g}"], rounds[f"{share:g}"] = round(_mean(each), 4), asked
        facts = {"corpus": self.known.name, "documents": size, "words": words, "epsilon": epsilon}
        return {**facts, "held_out": found, "rounds": rounds, "frequencies": round(self.known.frequencies, 4)}


def start_rule(seeds: Sequence[int] = (0,), on_progress: OnProgress | None = None) -> Row:
    """Every case with every epsilon and share, the share that gives up least, and what it gives up on each."""
    cases = {"synthetic 3000": partial(synthetic, 3_000)} | {n: partial(_with_frequencies, make) for n, make in CORPORA.items()}
    rows, case = list[Row](), None
    for (name, make), epsilon in told(list(product(cases.items(), EPSILONS)), on_progress):
        if case is None or case.known.name != name:
            case = AskedFirst(replace(make(), name=name))
        rows.append(case.row(epsilon, SHARES, seeds))
    share = fitted_share(rows)
    judged = [{**row, "given_up": round(_given_up(row, share), 4)} for row in rows]
    return {"reproduction": "start-rule", **SETTINGS, "seeds": len(seeds), "start_share": share, "rows": judged}


def fitted_share(rows: Sequence[Row]) -> float:
    """The share that gives up least over all rows; of equal ones the smallest."""
    shares = [float(share) for share in rows[0]["held_out"] if float(share)]
    return min(shares, key=lambda share: (round(_mean([_given_up(row, share) for row in rows]), 3), share))


def _given_up(row: Row, share: float) -> float:
    """How much less likely a held-out word is with this share than with the best one."""
    found: Mapping[str, float] = row["held_out"]
    return max(found.values()) - found[f"{share:g}"]


# ---- rounds where no public vectors say how to begin -------------------------------------------------------------------

PLAIN, PAIRS = "plain", "moments without vectors"
MORE_ROUNDS = (*ROUNDS, 12, 20)
EACH_WITHOUT_VECTORS = tuple(round(0.05 * 1.2**n, 3) for n in range(18))


@dataclass(frozen=True)
class BegunWithoutVectors:
    """Documents, and how a training on them begins: at random, or at the topics of pairs of words."""

    known: KnownWords
    start: str

    @property
    def share(self) -> float:
        """What the question before the training has of the budget."""
        return USUAL_START if self.start == PAIRS else 0.0

    def held_out(self, epsilon: float, rounds: int, seed: int) -> float:
        """The log-likelihood of a held-out word after so many rounds."""
        begun = AskedFirst(self.known, vectors=False).begun(epsilon, self.share, seed)
        return self.known.held_out(self.model(epsilon), epsilon, rounds, seed, self.share, begun, plain=begun is None)

    def model(self, epsilon: float) -> VariationalLDA:
        """As a plan under a budget has it that says how many documents there are."""
        size, words, pairs = len(self.known.train), len(self.known.train.vocabulary), self.start == PAIRS
        totals = totals_for(size, TOPICS, words, self.noise(epsilon), plain=not pairs, after_pairs=pairs)
        return VariationalLDA(n_topics=TOPICS, **{**VariationalLDA.budget_defaults, "totals": totals})

    def noise(self, epsilon: float) -> float:
        """That of one round with all that the question leaves."""
        return noise_of_one_round(epsilon, DELTA) / sqrt(1.0 - self.share)


def rounds_without_vectors(
    seeds: int = 2, on_progress: OnProgress | None = None, keep: Path | None = None, workers: int = 1
) -> Row:
    """Every case with every start and epsilon, the fit for each start, and what its rule gives up on each row."""
    tried = product((*FITTED, *FEWER), (PLAIN, PAIRS), EPSILONS)
    keys = [{"corpus": name, "start": start, "epsilon": epsilon, "seeds": seeds} for name, start, epsilon in tried]
    return judged_without_vectors(made(keys, row_without_vectors, KeptRows(keep), workers, on_progress))


def row_without_vectors(key: Key) -> Row:
    """One corpus with one start and one epsilon, by the number of rounds."""
    known, epsilon = {**CORPORA, **FEWER}[key["corpus"]](), key["epsilon"]
    case = BegunWithoutVectors(known, key["start"])
    found = {n: _mean([case.held_out(epsilon, n, seed) for seed in range(key["seeds"])]) for n in MORE_ROUNDS}
    return {**key, **known.facts(epsilon, case.noise(epsilon)), **known.outcomes(found)}


def judged_without_vectors(rows: Sequence[Row]) -> Row:
    """The result: the fit for each start, and what its rule gives up."""
    by_start = {start: [one for one in rows if one["start"] == start] for start in (PLAIN, PAIRS)}
    rules = {start: fitted_rounds(mine, MORE_ROUNDS, EACH_WITHOUT_VECTORS) for start, mine in by_start.items()}
    tables = [{"start": start, "rounds_each": each, "most_rounds": most} for start, (each, most) in rules.items()]
    found = [_judged(one, *rules[one["start"]]) for one in rows]
    return {"reproduction": "rounds-without-vectors", **SETTINGS, "tables": {"Rules": tables}, "rows": found}


# ---- documents ---------------------------------------------------------------------------------------------------------


def synthetic(size: int) -> KnownWords:
    """So many documents of LDA's own process, and vague vectors of their words."""
    each = LdaNodes(nodes=1, topics=TOPICS, words=WORDS, alpha=0.1, eta=0.05)
    made_up = lda_nodes(replace(each, documents=size, validation_documents=1_000, shortest=15, longest=75), seed=7)
    (train,), (held,) = made_up.train.values(), made_up.validation.values()
    return KnownWords(f"{SYNTHETIC} {size}", train, held, public_knowledge(vague_vectors(made_up.beta), TOPICS))


def _over_its_words(name: str, corpus: Corpus) -> KnownWords:
    """A corpus over its own frequent words, which is no private choice, with public vectors."""
    words = tuple(sorted(prune(corpus, max_words=WORDS)))
    counted = corpus.project(words)
    train, held = counted.select(np.flatnonzero(counted.lengths() >= 2)).split(0.9, seed=0)
    return KnownWords(name, train, held, public_knowledge(np.asarray(read_vectors(GLOVE, words).matrix(words)), TOPICS))


def _docstrings() -> KnownWords:
    return _over_its_words("docstrings", Corpus.concat(list(docstring_parties().values()), name="docstrings"))


def _read(file: str) -> KnownWords:
    return _over_its_words(file.partition(".")[0], research_corpus(file))


def _few_of(make: Callable[[], KnownWords]) -> KnownWords:
    """The same words, and a part of the documents to train on."""
    known = make()
    few = np.sort(np.random.default_rng(0).permutation(len(known.train))[:FEW])
    return replace(known, train=known.train.select(few))


def _with_frequencies(make: Callable[[], KnownWords]) -> KnownWords:
    """The same documents, not too many, and what a run knows of their words: also their frequencies in general English."""
    known = make()
    train, shares = known.train, public_shares(known.train.vocabulary, "en", Tokeniser())
    filled = np.where(shares > 0, shares, shares[shares > 0].min() / 2)
    few = train.select(np.random.default_rng(0).permutation(len(train))[:MOST_DOCUMENTS])
    return replace(known, train=few, public=replace(known.public, frequencies=filled / filled.sum()))


CORPORA: Mapping[str, Callable[[], KnownWords]] = {
    "docstrings": _docstrings,
    "M10": partial(_read, M10),
    "StackOverflow titles": partial(_read, PUBLIC[1]),
    "SMS": partial(_read, SMS),
}
FITTED = ("docstrings", "M10", "SMS")  # titles begin elsewhere by the rule for short texts
FEWER: Mapping[str, Callable[[], KnownWords]] = {f"{FEW:,} of {name}": partial(_few_of, CORPORA[name]) for name in FITTED}
