"""How many rounds of `lda-vi` predict best under a budget: the fit of the rule in `models/rounds_rule.py`.

Fitted on corpora on which settings may be chosen, whole and a part of each; what the rule gives on synthetic documents and on
titles stands beside it. All documents are in one place, and the noise is a plain Gaussian: only the number of rounds is looked
at here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from lab.measuring import OnProgress, Row
from lab.research_corpora import M10, PUBLIC, SMS, research_file
from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Public
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties
from securetm.corpus.readers import read_corpus
from securetm.corpus.synthetic import LdaNodes, lda_nodes
from securetm.corpus.tokeniser import prune
from securetm.corpus.word_vectors import GLOVE, read_vectors
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.public_knowledge import PublicKnowledge, public_knowledge
from securetm.models.rounds_rule import noise_of_one_round, rounds_of_signal, signal

DELTA, RADIUS, TOPICS, WORDS = 1e-5, 2.0, 20, 1_000
SIZES, EPSILONS, ROUNDS = (1_000, 3_000, 8_000), (1.0, 3.0, 8.0), (1, 2, 3, 4, 6, 8)
EACH = tuple(round(0.01 * 1.25**n, 4) for n in range(16))  # rounds for each unit of the signal, that are tried
SYNTHETIC, FEW = "synthetic", 2_000
MODEL = VariationalLDA(n_topics=TOPICS, eta=1.0, repeats=1, passes=20)
_VAGUE = 2.5  # deviations of what blurs the vectors: such topics predict worse than word frequencies, as public ones do


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
        for _ in range(rounds):
            query = model.query(state)
            summed = ClippedRowSum(query.terms, RADIUS)
            query.answer(self.train, summed, {}, rng)
            noised = {name: block + rng.normal(0.0, deviation, block.shape) for name, block in summed.blocks().items()}
            state = model.update(state, Answer(noised, deviation=deviation))
        seen, unseen = self.held.halves(0)
        return float(np.sum(model.log_likelihood(state, seen, unseen)) / unseen.counts.sum())

    @property
    def frequencies(self) -> float:
        """The same of word frequencies."""
        _, unseen = self.held.halves(0)
        counts = np.asarray(self.train.counts.sum(axis=0)).ravel() + 0.5
        return float((unseen.counts @ np.log(counts / counts.sum())).sum() / unseen.counts.sum())


def reproduce(seeds: Sequence[int] = (0,), on_progress: OnProgress | None = None) -> Row:
    """Every case with every epsilon and number of rounds, the fit on the synthetic ones, and what the rule gives up on each."""
    makers = {**{f"{SYNTHETIC} {size}": synthetic_of(size) for size in SIZES}, **CORPORA}
    makers |= {f"{FEW:,} of {name}": few_of(CORPORA[name]) for name in FITTED}
    cases = {name: make() for name, make in makers.items()}  # a corpus that is not here is refused now
    rows = list[Row]()
    for name, case in cases.items():
        for epsilon in EPSILONS:
            found = {n: _mean([case.held_out(MODEL, epsilon, n, seed) for seed in seeds]) for n in ROUNDS}
            rows.append(_row(case, name, epsilon, found))
            if on_progress:
                on_progress(len(rows), len(cases) * len(EPSILONS))
    return judged(rows, len(seeds))


def judged(rows: Sequence[Row], seeds: int) -> Row:
    """The result: the fit, and what its rule gives up on each row."""
    each, most = fitted(rows)
    settings = {"topics": TOPICS, "words": WORDS, "delta": DELTA, "radius": RADIUS, "seeds": seeds}
    found = {"rounds_each": each, "most_rounds": most, "rows": [_judged(row, each, most) for row in rows]}
    return {"reproduction": "rounds-rule", **settings, **found}


def fitted(rows: Sequence[Row], rounds: Sequence[int] = ROUNDS, each: Sequence[float] = EACH) -> tuple[float, int]:
    """The rule's two numbers that give up least on the fitted corpora; of equal ones, those with the fewest rounds."""
    chosen = [row for row in rows if row["corpus"].removeprefix(f"{FEW:,} of ") in FITTED]
    pairs = [(one, most) for most in rounds for one in each]

    def cost(pair: tuple[float, int]) -> tuple[float, int, float]:
        return (round(_mean([given_up(row, *pair) for row in chosen]), 3), pair[1], pair[0])

    return min(pairs, key=cost)


def given_up(row: Row, each: float, most: int) -> float:
    """How much less likely a held-out word is after the rule's rounds than after the best number of them."""
    found = {int(n): value for n, value in row["held_out"].items()}
    asked = rounds_of_signal(row["signal"], each, most)
    tried = sorted(found)
    best: float = max(found.values())
    return best - float(np.interp(log(asked), [log(n) for n in tried], [found[n] for n in tried]))


def _row(case: KnownWords, name: str, epsilon: float, found: Mapping[int, float]) -> Row:
    size, words = len(case.train), len(case.train.vocabulary)
    return {
        "corpus": name,
        "documents": size,
        "words": words,
        "epsilon": epsilon,
        "signal": round(signal(size, TOPICS, words, noise_of_one_round(epsilon, DELTA)), 2),
        "held_out": {str(n): round(value, 4) for n, value in found.items()},
        "frequencies": round(case.frequencies, 4),
    }


def _judged(row: Row, each: float, most: int) -> Row:
    lost = round(given_up(row, each, most), 4)
    return {**row, "rounds": rounds_of_signal(row["signal"], each, most), "given_up": lost}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


# ---- cases -------------------------------------------------------------------------------------------------------------


def synthetic_of(size: int) -> Callable[[], KnownWords]:
    """Makes so many documents of LDA's own process."""
    return lambda: _synthetic(size)


def _synthetic(size: int) -> KnownWords:
    """Documents of LDA's own process, and word vectors that know as vaguely as public ones which words go together."""
    made = lda_nodes(
        LdaNodes(
            nodes=1,
            topics=TOPICS,
            shared_topics=TOPICS,
            words=WORDS,
            alpha=0.1,
            eta=0.05,
            documents=size,
            validation_documents=1_000,
            shortest=15,
            longest=75,
        ),
        seed=7,
    )
    (train,), (held,) = made.train.values(), made.validation.values()
    rng = np.random.default_rng(8)
    of_topics = made.beta / made.beta.sum(axis=0)
    vectors = of_topics.T @ rng.normal(size=(TOPICS, 50)) / 50**0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors += _VAGUE * rng.normal(size=vectors.shape) / 50**0.5
    return KnownWords(f"synthetic {size}", train, held, public_knowledge(vectors, TOPICS))


def _case(name: str, corpus: Corpus) -> KnownWords:
    """A corpus over its own frequent words, which is no private choice, with public vectors."""
    words = tuple(sorted(prune(corpus, max_words=WORDS)))
    counted = corpus.project(words)
    counted = counted.select(np.flatnonzero(counted.lengths() >= 2))
    train, held = counted.split(0.9, seed=0)
    vectors: Array = np.asarray(read_vectors(GLOVE, words).matrix(words))
    return KnownWords(name, train, held, public_knowledge(vectors, TOPICS))


def _docstrings() -> KnownWords:
    return _case("docstrings", Corpus.concat(list(docstring_parties().values()), name="docstrings"))


def _read(file: str) -> Callable[[], KnownWords]:
    return lambda: _case(file.partition(".")[0], read_corpus(research_file(file)))


def few_of(make: Callable[[], KnownWords]) -> Callable[[], KnownWords]:
    """The same words, and a part of the documents to train on."""

    def made() -> KnownWords:
        known = make()
        few = np.sort(np.random.default_rng(0).permutation(len(known.train))[:FEW])
        return replace(known, train=known.train.select(few))

    return made


CORPORA: Mapping[str, Callable[[], KnownWords]] = {
    "docstrings": _docstrings,
    "M10": _read(M10),
    "StackOverflow titles": _read(PUBLIC[1]),
    "SMS": _read(SMS),
}
FITTED = ("docstrings", "M10", "SMS")  # titles begin elsewhere by the rule for short texts
