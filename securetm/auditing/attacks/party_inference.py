"""What a party's own topics show of its documents: which party holds a known document, and which one holds a subject.

The adversary sees what each party sends, and knows that the documents were in the training.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy import sparse

from securetm.auditing.attack import Attack, Challenge, Effort, GroundTruth, Proportion, Score, stacked
from securetm.auditing.parts.reconstruction_scores import in_words
from securetm.auditing.parts.shares import counts_behind, noise_of
from securetm.auditing.record import Example
from securetm.auditing.views import BY_PARTIES, AdversaryView, ReadVector, party_vectors
from securetm.contracts import Array

# ---- a party's topics as counts of words, from what it sent ---------------------------------------------------------
# Masked numbers, which are no counts, give a table as well; it means nothing.

TOPICS, COUNTS = "topics", "counts"  # blocks of the matched models, and of models whose answers are summed


def tables_by_party(vectors: Iterable[ReadVector]) -> dict[str, Array]:
    """Each party's last table, topics x words, as whole counts if its shares come from such."""
    return {one.party: _counts(one) for one in vectors if TOPICS in one.blocks or COUNTS in one.blocks}


def _counts(vector: ReadVector) -> Array:
    if COUNTS in vector.blocks:
        return np.maximum(np.asarray(vector.blocks[COUNTS], dtype=np.float64), 0.0)
    rows = np.maximum(np.asarray(vector.blocks[TOPICS], dtype=np.float64), 0.0)
    table, amount = rows[:, :-1], float(rows[:, -1].max(initial=0.0))  # the last number is how much data the party has
    sums = table.sum(axis=1)
    if not np.all((np.abs(sums - 1.0) < 1e-3) | (sums == 0.0)):  # these are no shares
        return table
    behind = [counts_behind(row) for row in table]
    if all(found is not None or not row.any() for found, row in zip(behind, table, strict=True)):
        return np.array([row if found is None else found for found, row in zip(behind, table, strict=True)], dtype=float)
    return table * amount / max(len(table), 1)


def fits(documents: Array, table: Array) -> Array:
    """Each document's log-likelihood in these topics, with its best shares of topics (folding in); 0 without a word."""
    smooth = table + 1e-3  # the count of a word that a topic does not have
    topics = smooth / smooth.sum(axis=1, keepdims=True)
    shares = np.full((len(documents), len(topics)), 1.0 / len(topics))
    for _ in range(30):  # of folding a document in
        expected = documents / (shares @ topics)
        shares *= expected @ topics.T
        sums = shares.sum(axis=1, keepdims=True)
        shares = np.where(sums > 0.0, shares / np.where(sums > 0.0, sums, 1.0), 1.0 / len(topics))
    likelihood: Array = (documents * np.log(shares @ topics)).sum(axis=1)
    return likelihood


def shares_of(subjects: Iterable[Array], tables: Mapping[str, Array], noise: float = 0.0) -> dict[str, Array]:
    """Each subject's share of all words of each party. `noise` is the mean noise of a count."""
    found, wanted = {}, list(subjects)
    for party, table in tables.items():
        words = table.sum(axis=0)
        slots = words.sum() / (1.0 + len(words) * noise)
        real = np.maximum(words - slots * noise, 0.0)
        found[party] = np.array([real[subject].sum() for subject in wanted]) / max(float(real.sum()), 1e-300)
    return found


SOURCE = "documents whose party is named rightly"
HOLDER = "subjects whose main party is named rightly"
SHARE = "shares of a subject that are told within a tenth"
_MOST_EXAMPLES = 4


def pose_documents(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Asks about equally many documents of each honest party, in random order."""
    honest = truth.honest(truth.held)
    each = max(effort["documents"] // len(honest), 1)
    chosen = [rng.choice(counts.shape[0], size=min(each, counts.shape[0]), replace=False) for counts in honest.values()]
    rows = stacked(counts[places] for counts, places in zip(honest.values(), chosen, strict=True))
    whose = np.repeat(list(honest), [len(places) for places in chosen])
    order = rng.permutation(len(whose))
    return Challenge(rows[order], tuple(zip((str(name) for name in whose[order]), rows[order].todense(), strict=True)))


def name_parties(view: AdversaryView, effort: Effort) -> tuple[str, ...]:
    """Names the party whose own topics explain a document best."""
    tables = {name: table for name, table in tables_by_party(party_vectors(view)).items() if name not in view.helpers}
    documents, names = np.asarray(view.question.todense(), dtype=np.float64), sorted(tables)
    if not names:
        return ("",) * len(documents)
    best = np.stack([fits(documents, tables[name]) for name in names]).argmax(axis=0)
    return tuple(names[place] for place in best)


def judge_parties(named: tuple[str, ...], truth: GroundTruth) -> Score:
    answers = [(guess, real, np.asarray(counts)) for guess, (real, counts) in zip(named, truth.answer, strict=True)]
    examples = [
        Example(f"{real}: {in_words(counts, truth.vocabulary)}", f"guess: {guess or 'no party'}", guess == real)
        for guess, real, counts in answers[:_MOST_EXAMPLES]
    ]
    right = np.array([guess == real for guess, real, _ in answers])
    return Score({SOURCE: Proportion.of_mask(right)}, tuple(examples))


def pose_subjects(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Asks about groups of words that occur together unusually often, and their share of all words at each party."""
    held = truth.honest(truth.held)
    # a word of several documents, with the words that are more frequent in its documents than in all documents
    present = sparse.csr_array((stacked(held.values()) > 0).astype(np.float64))
    often = np.asarray(present.sum(axis=0)).ravel()
    usable = np.flatnonzero(often >= 3)  # documents that have the word
    firsts = rng.choice(usable, size=min(effort["subjects"], len(usable)), replace=False)
    together = np.asarray((present[:, firsts].T @ present).todense())
    lift = together / np.maximum(often, 1.0)[None, :] + (together > 1)  # words that are beside it more than once come first
    lift[np.arange(len(firsts)), firsts] = 3.0  # the word itself always
    subjects = tuple(np.argsort(-row, kind="stable")[:5] for row in lift)
    return Challenge(subjects, shares_of(subjects, held))


def estimate_shares(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:
    """Estimates each subject's share of all words, by each party's own topics."""
    noise = noise_of(view.public.profile, len(view.vocabulary())).mean
    return shares_of(view.question, tables_by_party(party_vectors(view)), noise)


def judge_shares(estimated: Mapping[str, Array], truth: GroundTruth) -> Score:
    """Counts the subjects whose main party is named rightly, and the shares that are right within a tenth."""
    names = sorted(truth.answer)
    real = np.stack([truth.answer[name] for name in names])
    guess = np.stack([estimated.get(name, np.zeros(real.shape[1])) for name in names])
    right = guess.argmax(axis=0) == real.argmax(axis=0)
    near = np.abs(guess - real) <= 0.1 * real  # of the share itself

    def shown_shares(shares: Array) -> str:
        return "; ".join(f"{names[party]} {100 * shares[party]:.2f} %" for party in np.argsort(-shares, kind="stable"))

    shown = zip(real.T[:_MOST_EXAMPLES], guess.T, right.tolist(), strict=False)
    examples = tuple(Example(shown_shares(held), shown_shares(told), fits) for held, told, fits in shown)
    return Score({HOLDER: Proportion.of_mask(right), SHARE: Proportion.of_mask(near)}, examples)


_MODELS = ("lda", "lda-matched", "semantic", "sentence-lda", "sentence-lda-matched")

SOURCE_INFERENCE = Attack(
    name="source_inference",
    title="Which party holds a document",
    citation="Hu et al. 2021 (arXiv 2109.05659), there by the loss of each party's own model; here by its own topics",
    cost="under a second on one core for a hundred documents",
    given="the documents themselves, known to be in the training, and what each party sends",
    either=BY_PARTIES,
    models=_MODELS,
    measures={SOURCE: "document"},
    bears_on=("linking",),
    attack=name_parties,
    judge=judge_parties,
    efforts=("documents",),
    pose=pose_documents,
    limits=(
        "networks, whose gradients name the words of each party's documents (gradient_inversion)",
        "what the shared model shows to an attacker who knows some of a party's documents",
    ),
    remark="Chance is one in the number of parties. Parties with different subjects are easier to distinguish.",
)

PROPERTY_INFERENCE = Attack(
    name="property_inference",
    title="Which party holds a subject, and how much of it",
    citation="Melis et al. 2019 (arXiv 1805.04049), on properties of a party's data that its updates show",
    cost="under a second on one core",
    given="a few words of each subject, and what each party sends",
    either=BY_PARTIES,
    models=_MODELS,
    measures={HOLDER: "subject", SHARE: "share"},
    bears_on=("inference",),
    attack=estimate_shares,
    judge=judge_shares,
    efforts=("subjects",),
    pose=pose_subjects,
    limits=(
        "networks, whose gradients name each party's words (gradient_inversion)",
        "how a share changes from round to round",
        "subjects as people would name them: here a subject is a group of five words that occur together",
    ),
    remark="An epsilon for words, documents or persons does not protect the subjects of a whole party's documents, as long as "
    "the attacker sees the party's own vector. A sum over parties hides them.",
)
