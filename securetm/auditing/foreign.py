"""Attacks a topic model from elsewhere: membership by its fit, by word counts, and by canaries. It needs no run.

Whoever audits names documents that the model was trained on, and others of the same kind. Beside the model it trains one of
its own on the members, without protection: an attack that fails there shows nothing by failing on the model.
"""

from __future__ import annotations

import csv
import json
import shlex
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.attack import EVERY_MODEL, Attack, Effort, GroundTruth
from securetm.auditing.attacks.one_run import SHOWN, allowed_of_run, guess_extremes, judge_guesses
from securetm.auditing.evidence import today
from securetm.auditing.parts.empirical_epsilon import ideal_one_run
from securetm.auditing.parts.membership_game import INSIDE, OUTSIDE, allowed, best_fits, judged, measures, presence
from securetm.auditing.plans import Trial
from securetm.auditing.record import Audit
from securetm.auditing.trials import Case, attacked_run, carried_out
from securetm.auditing.verdicts import corrected
from securetm.auditing.views import MODEL, VOCABULARY, AdversaryView
from securetm.contracts import Array, Budget
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import Tokeniser
from securetm.data_classes import dataclass, replace
from securetm.errors import Mistake, NoSuchPath
from securetm.mechanisms.noising import PRIVATE
from securetm.models.lda.lda import LDA
from securetm.stages import Stages, Unwatched
from securetm.threats import read_threat_model
from securetm.version import __version__

# ---- files of topics, which hold numbers and words only: nothing is unpickled ---------------------------------------

_UNSAFE = (".pkl", ".pickle", ".joblib", ".model", ".bin", ".pt", ".pth", ".dill", ".gensim")
_MOST = 200_000_000  # numbers of one table
_WHOLE = 1e-3  # how near to whole numbers counts are
_NEAR = 0.02  # the same behind shares, which libraries keep in 32 bits
_LEAST_COUNT = 100  # of the rarest word of a topic, as far as counts are looked for behind shares


@dataclass(frozen=True)
class ForeignModel:
    """Topics from elsewhere."""

    name: str
    words: tuple[str, ...]
    weights: Array  # topics x words
    counted: Array | None = None  # the counts of words behind these weights, where they could be read back

    @property
    def topics(self) -> Array:
        found: Array = self.weights / self.weights.sum(axis=1, keepdims=True)
        return found

    @property
    def totals(self) -> Array | None:
        """How often each word occurs in the training documents, where the weights tell it; else None.

        The totals of counts are whole numbers, and so they are where a prior in them adds up to one for each word.
        """
        found: Array = (self.weights if self.counted is None else self.counted).sum(axis=0)
        whole = np.abs(found - found.round()).max() <= _WHOLE and found.max() > 1
        return found if whole else None


def read_foreign(path: Path) -> ForeignModel:
    """The topics in that file or folder, checked."""
    if not path.exists():
        raise NoSuchPath(str(path))
    if path.suffix.lower() in _UNSAFE:
        raise Mistake(
            "{path} is a format that can run code when it is opened, so it is not opened",
            hint="export the topics where the model was made: "
            "docs/how-to/audit-foreign-models.md has one line for each library",
            path=str(path),
        )
    read = _FORMATS.get("folder" if path.is_dir() else path.suffix.lower())
    if read is None:
        raise _unknown_file(path, f"nothing is known of {path.suffix or 'files without an ending'}")
    try:
        words, weights = read(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, RecursionError) as problem:
        raise _unknown_file(path, f"{type(problem).__name__}: {str(problem)[:200]}") from problem
    return _checked(path, words, weights)


def _unknown_file(path: Path, problem: str) -> Mistake:
    sentence = "{path} is no file of topics that can be read here: {problem}"
    formats = "give .csv, .json, .npz or a folder of BERTopic, as docs/how-to/audit-foreign-models.md describes them"
    return Mistake(sentence, hint=formats, path=str(path), problem=problem)


def _bad_weight(path: Path, what: str) -> Mistake:
    finite = "weights are finite numbers that are not negative, and every topic has one above 0: export the model again"
    return Mistake("a weight in {path} is {what}", hint=finite, path=str(path), what=what)


def _repeated_word(path: Path, word: str) -> Mistake:
    sentence = "{path} has the word {word!r} twice in one topic, or twice in its vocabulary"
    return Mistake(
        sentence, hint="each word stands once: add its weights up, or export the model again", path=str(path), word=word
    )


def _checked(path: Path, words: Sequence[str], weights: Array) -> ForeignModel:
    if weights.ndim != 2 or weights.shape[1] != len(words) or not weights.size or weights.size > _MOST:
        raise _unknown_file(path, f"weights of the form {weights.shape} for {len(words):,} words")
    if len(set(words)) < len(words):
        raise _repeated_word(path, next(word for word in words if list(words).count(word) > 1))
    if not np.isfinite(weights).all():
        raise _bad_weight(path, "no finite number (NaN or infinite)")
    if (weights < 0).any():
        raise _bad_weight(path, f"negative: {weights.min():g}")
    if not (weights.sum(axis=1) > 0).all():
        raise _bad_weight(path, "0 in a whole topic")
    table = weights.astype(np.float64)
    return ForeignModel(path.name, tuple(words), table, _counts_in(table))


# ---- counts behind shares ------------------------------------------------------------------------------------------


def _counts_in(shares: Array) -> Array | None:
    """Whole numbers of words behind the shares of each topic, with one prior for all words in them or none; else None."""
    if np.abs(shares.sum(axis=1) - 1).max() > _WHOLE:
        return None
    found = []
    for row in shares:
        # the smallest whole numbers in these proportions, the least of them at most 100
        above = row - row.min()
        least = above[above > 0].min(initial=np.inf)
        tried = (above * (times / least) for times in range(1, _LEAST_COUNT + 1) if np.isfinite(least))
        counts = next((one.round() for one in tried if np.abs(one - one.round()).max() <= _NEAR), None)
        if counts is None:
            return None
        found.append(counts)
    return np.stack(found)


# ---- formats -------------------------------------------------------------------------------------------------------

Table = tuple[Sequence[str], Array]


def _csv(path: Path) -> Table:
    """Lines of topic, word and weight, under these names."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return _listed(path, ((row["topic"], row["word"], float(row["weight"])) for row in csv.DictReader(file)))


def _json(path: Path) -> Table:
    """Either {"vocabulary": [...], "weights": [[...]]}, or a list of topics: {word: weight}, or [[word, weight], ...]."""
    content = json.loads(path.read_text("utf-8"), object_pairs_hook=_once(path))
    if isinstance(content, dict) and "weights" in content:
        return [str(word) for word in content["vocabulary"]], np.array(content["weights"], dtype=np.float64)
    topics = content["topics"] if isinstance(content, dict) else content
    pairs = (topic.items() if isinstance(topic, dict) else topic for topic in topics)
    return _listed(path, ((n, word, float(weight)) for n, topic in enumerate(pairs) for word, weight in topic))


def _npz(path: Path) -> Table:
    """Arrays `weights` (topics x words) and `vocabulary` (texts); pickled objects in it are refused."""
    with np.load(path, allow_pickle=False) as found:
        try:
            return [str(word) for word in found["vocabulary"].tolist()], np.asarray(found["weights"], dtype=np.float64)
        except ValueError as problem:
            if "allow_pickle" not in str(problem):
                raise
            objects = "an array holds Python objects, which can run code; words are to be texts: .astype(str)"
            raise _unknown_file(path, objects) from problem


def _bertopic(path: Path) -> Table:
    """A folder that BERTopic saved as safetensors: the c-TF-IDF matrix, and the words in its configuration.

    A weight is the word's share of the topic times a factor of the word, and the file holds these factors. So the counts of
    words in each topic are read back where the shares are fractions of whole numbers; else the weights are taken as they are.
    """
    from safetensors.numpy import load_file

    kept, config = load_file(path / "ctfidf.safetensors"), json.loads((path / "ctfidf_config.json").read_text("utf-8"))
    places: Mapping[str, int] = config["vectorizer_model"]["vocab"]
    words = [word for word, _ in sorted(places.items(), key=lambda pair: pair[1])]
    shape = tuple(int(n) for n in kept["shape"])
    if shape[0] * shape[1] > _MOST:
        raise ValueError(f"a table of {shape}")
    weights = sparse.csr_array((kept["data"], kept["indices"], kept["indptr"]), shape=shape).toarray()
    factors = kept.get("diag")
    if factors is None or factors.shape != weights.shape[1:] or not np.isfinite(factors).all() or (factors <= 0).any():
        return words, weights
    counts = _counts_in(weights / factors)
    return words, weights if counts is None else counts


def _listed(path: Path, lines: Iterable[tuple[Any, Any, float]]) -> Table:
    """A table from lines of topic, word and weight. Words that a topic does not name have weight 0 there."""
    places: dict[str, int] = {}
    rows: dict[str, dict[int, float]] = {}
    for topic, word, weight in lines:
        row = rows.setdefault(str(topic), {})
        place = places.setdefault(str(word), len(places))
        if place in row:
            raise _repeated_word(path, str(word))
        row[place] = weight
    if len(rows) * len(places) > _MOST:
        raise ValueError(f"a table of {len(rows)} topics and {len(places)} words")
    weights = np.zeros((len(rows), len(places)))
    for at, row in enumerate(rows.values()):
        weights[at, list(row)] = list(row.values())
    return list(places), weights


def _once(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Refuses a table of JSON that names a word twice, of which Python would keep the last."""

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise _repeated_word(path, next(name for name in names if names.count(name) > 1))
        return found

    return read


_FORMATS: Mapping[str, Callable[[Path], Table]] = {".csv": _csv, ".json": _json, ".npz": _npz, "folder": _bertopic}


# ---- the audit ------------------------------------------------------------------------------------------------------

CONFIDENCE, SEED = 0.95, 20_21
FIT, COUNTS = "fit against word frequencies", "word counts"
_LEAST = 20  # documents with a known word on each side
_SHOWN_FROM = 0.55  # of pairs of a member and another that are ranked rightly, where no epsilon is claimed; chance has 0.5
_UNCLAIMED = (8.0, 1e-5)  # the epsilon and delta for which guesses about canaries are chosen where none is claimed


@dataclass(frozen=True)
class Sides:
    """The candidates in the model's words, shuffled, and which of them are members."""

    counts: Any  # a CSR array
    inside: Array


@dataclass(frozen=True)
class ForeignFiles:
    """What an audit of a model from elsewhere is given."""

    model: Path
    members: Path
    others: Path
    canaries: tuple[Path, Path] | None = None  # made documents that a fair coin put in, and those that it left out
    text: str | None = None  # the column of the text
    claimed: Budget | None = None


def audit_foreign(files: ForeignFiles, stages: Stages | None = None) -> Audit:
    """The audit as an ordinary record: every attack on the baseline first, then on the model."""
    begun, stages = time.perf_counter(), stages or Unwatched()
    model, rng, claimed = read_foreign(files.model), np.random.default_rng(SEED), files.claimed
    sides = _read_both(files.members, files.others, model, files.text, rng)
    made = _read_both(*files.canaries, model, files.text, rng) if files.canaries else None
    stages.stage("a model without protection beside it", 1)
    # LDA with as many topics, learned from the members and from nothing else, with its plain counts
    members = sparse.csr_array(sides.counts[np.flatnonzero(sides.inside)[:5_000]])  # members that the baseline is trained on
    documents = Corpus(HeldDocuments(members, model.words, np.arange(members.shape[0], dtype=np.uint64)))
    trained = LDA(n_topics=max(len(model.weights), 2)).fit(documents, epochs=40, seed=SEED)
    plain = np.asarray(trained.learned.state["counts"], float)
    beside = ForeignModel(f"LDA on the members of {model.name}", model.words, plain)
    stages.step(1)
    fits = [_case(ON_FIT, model, sides, claimed)]
    if made is not None:  # canaries need no baseline: by chance they show an epsilon of 0
        fits.append(_case(ON_CANARIES, model, made, claimed))
    findings = carried_out(_case(ON_FIT, beside, sides, None, baseline=True), fits, stages)
    if model.totals is not None:
        by_counts = [_case(ON_COUNTS, model, sides, claimed)]
        findings += carried_out(_case(ON_COUNTS, beside, sides, None, baseline=True), by_counts, stages)
    untried = ["the noise of the training, and what its messages showed: only topics are here"]
    if made is None:
        untried.insert(0, "canaries: no made documents were named")
    if model.totals is None:
        untried.insert(0, "word counts: no counts of words can be read from these weights")
    again = ["securetm", "audit", "foreign", str(files.model)]
    again += ["--members", str(files.members), "--non-members", str(files.others)]
    if files.canaries is not None:
        again += ["--canaries-in", str(files.canaries[0]), "--canaries-out", str(files.canaries[1])]
    if files.text is not None:
        again += ["--text", files.text]
    if claimed is not None:
        again += ["--epsilon", f"{claimed.epsilon:g}", "--delta", f"{claimed.delta:g}"]
    title = f"What do the topics of {model.name} show of the documents that they were learned from?"
    seconds, command = time.perf_counter() - begun, (shlex.join(again),)
    return Audit("foreign", title, model.name, findings, tuple(untried), seconds, __version__, command, (), today())


def _read_both(members: Path, others: Path, model: ForeignModel, text: str | None, rng: np.random.Generator) -> Sides:
    """Both sides in the model's words, each document once, in a random order.

    A few that are alike in these words, as short texts are, are left out of both sides. More are refused.
    """
    sides: list[Mapping[bytes, Any]] = [_read(path, model, text) for path in (members, others)]
    common = set(sides[0]) & set(sides[1])
    if len(common) > 0.01 * min(map(len, sides)):  # of the smaller side
        raise Mistake(
            "{documents} of the members are among the non-members, too",
            hint="a document was trained on, or it was not: remove it from one of the two files",
            documents=len(common),
        )
    sides = [{name: row for name, row in side.items() if name not in common} for side in sides]
    for path, side in zip((members, others), sides, strict=True):
        if len(side) < _LEAST:
            raise _too_few(len(side), len(side), path)
    whole = sparse.csr_array(sparse.vstack([row for side in sides for row in side.values()]))
    order = rng.permutation(whole.shape[0])
    return Sides(whole[order], order < len(sides[0]))


def _too_few(known: int, documents: int, path: Path) -> Mistake:
    """Where nearly all texts are known to the model, there are too few of them."""
    prepared = "prepare the texts as the model's own were: the same language, lower case, stems and joined words"
    return Mistake(
        "{known} of {documents} documents in {path} have a word that the model knows, and {needed} are needed",
        hint=prepared if documents >= _LEAST else "give at least {needed} documents of each kind",
        known=known,
        documents=documents,
        path=str(path),
        needed=_LEAST,
    )


def _read(path: Path, model: ForeignModel, text: str | None) -> Mapping[bytes, Any]:
    """The different documents with a word that the model knows, by their counts."""
    lower = all(word == word.lower() for word in model.words)
    tokeniser = Tokeniser(lower=lower, stop_words="none", min_length=1, numbers=True)
    corpus = read_corpus(path, text=text, tokeniser=tokeniser)
    counts = sparse.csr_array(corpus.project(model.words).counts)
    known = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel())
    if len(known) < _LEAST:
        raise _too_few(len(known), len(corpus), path)
    rows = (counts[[place]] for place in known)
    return {row.indices.tobytes() + row.data.tobytes(): row for row in rows}


@dataclass(frozen=True)
class Topics:
    """What an attack on topics is asked: which of these documents they were learned from."""

    model: ForeignModel
    counts: Any  # of the candidates, a CSR array
    guesses: int  # about canaries

    def scrambled(self, rng: np.random.Generator) -> Topics:
        """The same weights at other words: what is left is chance."""
        order, counted = rng.permutation(len(self.model.words)), self.model.counted
        counted = None if counted is None else counted[:, order]
        return replace(self, model=replace(self.model, weights=self.model.weights[:, order], counted=counted))

    def fits(self) -> Array:
        """By how much the topics explain each word of a document better than the frequencies of words do."""
        often = np.asarray(self.counts.sum(axis=0), dtype=np.float64).ravel() + 0.5
        gained = best_fits(self.counts, self.model.topics) - self.counts @ np.log(often / often.sum())
        found: Array = gained / np.asarray(self.counts.sum(axis=1)).ravel()
        return found


def _by_counts(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:  # noqa: ARG001 - one model is all there is
    asked: Topics = view.question
    totals = asked.model.totals
    assert totals is not None  # else this is not tried
    share = float(totals.sum() / max(asked.counts.sum(), 1))
    return {COUNTS: presence(asked.counts, totals, min(max(share, 0.0), 1.0))}


def _case(attack: Attack, model: ForeignModel, sides: Sides, claimed: Budget | None, *, baseline: bool = False) -> Case:
    """The attack on this model, by its last measure: how members are ranked, or the epsilon that canaries show."""
    measure, bar = list(attack.measures)[-1], 1.0 if attack is ON_CANARIES else _SHOWN_FROM
    what = ("open", "lda") if baseline else ("made elsewhere", "topics from elsewhere")
    adversary = read_threat_model("model_reader").adversary("model reader")
    return Case(
        trial=Trial(
            attack.name, "model_reader", adversary.name, PRIVATE, (), measure, bar, {"models": 1}, confidence=CONFIDENCE
        ),
        attack=attack,
        adversary=adversary,
        claimed=claimed,
        claims=claimed is not None,
        run=attacked_run(*what, model.name, f"{len(model.weights)} topics, {len(model.words):,} words", claimed),
        posed=partial(_posed, model, sides),
        spent=lambda _, found: "nothing" if found.value is None else "1 model",
        place=model.name,
    )


def _posed(model: ForeignModel, sides: Sides, case: Case) -> tuple[AdversaryView, GroundTruth]:
    about = (case.claimed.epsilon, case.claimed.delta) if case.claimed else _UNCLAIMED
    guesses = ideal_one_run(len(sides.inside), *about, corrected(CONFIDENCE, 2))[0] // 2
    asked = Topics(model, sides.counts, guesses)
    answer = sides.inside if case.attack is ON_CANARIES else np.where(sides.inside, INSIDE, OUTSIDE).astype(np.int8)
    truth = GroundTruth((), {}, {}, answer=answer, confidence=CONFIDENCE, claimed=case.claimed)
    return AdversaryView(case.adversary, None, {}, question=asked, redrawn=asked.scrambled), truth


_GIVEN = "the candidates, and that they are of the same kind as the members"

_foreign = partial(Attack, cost="seconds on one core", given=_GIVEN, needs=(MODEL, VOCABULARY), models=EVERY_MODEL)

ON_FIT = _foreign(
    name="membership",
    title="Whether a document was in the training, from topics made elsewhere",
    citation="Manzonelli, Zhang and Vadhan 2024, arXiv 2403.04451 (topic models); Yeom et al. 2018, arXiv 1709.01604",
    measures=measures(FIT),
    attack=lambda view, _: {FIT: view.question.fits()},
    judge=judged,
    allowed=allowed,
    limits=(
        "shadow models, which find more: how the model was trained is not known here",
        "members and others that differ in more than their part in the training: then the figure shows that difference",
    ),
    remark="The baseline is LDA on the members alone. A model that was trained on more documents shows less of each.",
)

ON_COUNTS = _foreign(
    name="membership_counts",
    title="Whether a document was in the training, from the word counts in topics made elsewhere",
    citation="Homer et al. 2008 (who is in published sums); Dwork et al. 2015 (robust traceability); as equations here",
    measures=measures(COUNTS),
    attack=_by_counts,
    judge=judged,
    allowed=allowed,
    limits=("training documents that are not among the candidates: each of them makes the equations less exact",),
    remark="Where the weights are counts of words, or shares of which whole numbers can be read back.",
)

ON_CANARIES = _foreign(
    name="one_run_epsilon",
    title="Which canaries took part in a training elsewhere",
    citation="Steinke, Nasr and Jagielski 2023 (arXiv 2305.08846): privacy auditing with one training run",
    given="every canary; never a coin",
    measures={SHOWN: "epsilon"},
    attack=lambda view, _: guess_extremes(view.question.fits(), view.question.guesses),
    judge=judge_guesses,
    allowed=allowed_of_run,
    limits=("canaries that no fair coin put in or left out: then the bound means nothing",),
    remark="A bound below the claim says little: one run shows only a part of its epsilon.",
)
