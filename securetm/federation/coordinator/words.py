"""How the coordinator makes the run's one list of words and tells the parties. The list is on disk before any party is told."""

from __future__ import annotations

import json

import numpy as np

from securetm.contracts import Array
from securetm.corpus.public_words import ranked_words
from securetm.errors import Failed
from securetm.federation.budget.forecast import MORE_WORDS, needed_by
from securetm.federation.coordinator.hidden_words import SUM_OF_BUCKETS, columns
from securetm.federation.coordinator.rounds import Rounds
from securetm.federation.folder import ChangedFile
from securetm.federation.questions import FREQUENCIES, JOINT, MOST_CANDIDATES, MOST_WORD_BYTES, WORDS
from securetm.federation.store import write_bytes
from securetm.federation.wire import wire
from securetm.models.questions.hidden_words import SHARES
from securetm.models.questions.word_sketch import words_in
from securetm.models.questions.word_sums import ROUNDS as ROUNDS_OF_WORDS
from securetm.models.questions.word_sums import WordSearch, found_words
from securetm.models.questions.words import EmptyVocabulary, choose_vocabulary, merge_words
from securetm.plans.forecast import WORDS_A_TOPIC, least_words
from securetm.plans.profiles import BLIND, words_in_sums
from securetm.plans.schema import USUAL_LANGUAGE, Plan
from securetm.settings import require

KEPT_AS = "what parties were told about words"  # in the coordinator's store
COUNTED_AS = "what words parties were told to count"
SUM_OF_WORDS = "sum-of-words-{}"


def new_words(rounds: Rounds) -> tuple[str, ...]:
    """Makes the list: a public file's words, or those that the plan's rule takes from the opened answers."""
    words, plan, store = rounds.agreement.words, rounds.agreement.plan, rounds.store
    if words is None and plan.vocabulary.source == BLIND:
        words = columns(rounds)
        _check_enough(rounds, len(words))
        require(len(words) >= 2, "[vocabulary]", "min_documents", plan.vocabulary.min_documents, "leaves hardly a column")
    elif words is None:
        search = _searched(rounds) if plan.vocabulary.source == JOINT and words_in_sums(rounds.agreement.profile) else None
        about = plan.training.units, plan.vocabulary.max_share
        candidates, found, held = found_words(search, *about) if search else _candidates(rounds)
        base = rounds.agreement.base_words
        if len(candidates) + len(base) < 2 and (needed := needed_by(rounds.agreement, len(rounds.members))) is not None:
            raise Failed(
                "the selection of words found {found:word|words}: behind its noise a word needs about {need} "
                "documents of {whose}",
                hint=MORE_WORDS + "; what the selection cost is spent",
                found=len(candidates),
                need=needed.found_from,
                whose=needed.whose,
            )
        words, rounds.documents = chosen(plan, candidates, found, held, base), found
        _check_enough(rounds, len(words))
        problem = f"leaves, with max_share, a single one of {len(candidates)} words"
        require(len(words) >= 2, "[vocabulary]", "min_documents", plan.vocabulary.min_documents, problem)
        rounds.frequencies = search.frequencies(words, rounds.agreement.frequencies(words)) if search else None
    write_bytes(store.folder / "vocabulary.txt", "\n".join(words).encode())
    _keep(rounds, KEPT_AS, words)
    store.drop(COUNTED_AS)
    for name in (SUM_OF_WORDS, SUM_OF_BUCKETS):
        store.drop_states(name.format("*"))
    return words


def _check_enough(rounds: Rounds, words: int) -> None:
    """Stops before the rest of a budget is spent on topics that would repeat each other."""
    agreement = rounds.agreement
    topics, needed = agreement.model.most_shown_topics, needed_by(agreement, len(rounds.members))
    if needed is None or words >= least_words(topics):
        return
    raise Failed(
        "too few words: the selection found {found}, and {topics:topic needs|topics need} {need}, so the rest of the budget "
        "is not spent",
        hint="train at most {fit} (--topics {fit}), or " + MORE_WORDS + "; what the selection cost is spent",
        found=words,
        topics=topics,
        need=least_words(topics),
        fit=max(words // WORDS_A_TOPIC, 1),
    )


def _keep(rounds: Rounds, name: str, words: tuple[str, ...]) -> None:
    """Writes a list to disk before a party is told: parties take no other one, so it must be the same after a new start."""
    told = None if rounds.frequencies is None else rounds.frequencies.tolist()
    agreed = {"words": words, "documents": rounds.documents, "serial": rounds.serial, "numbers": rounds.numbers}
    rounds.store.put(name, json.dumps({**agreed, "frequencies": told}).encode())


def _kept(rounds: Rounds, name: str) -> tuple[str, ...]:
    """Returns the list that was kept before this start; empty if there is none. What led to it is not asked again."""
    stored = rounds.store.get(name)
    if stored is None:
        return ()
    agreed = json.loads(stored)
    rounds.documents = int(agreed["documents"])
    told = agreed["frequencies"]
    rounds.frequencies = None if told is None else np.array(told, dtype=np.float64)
    if rounds.serial < agreed["serial"]:  # killed before it kept its first state
        rounds.serial, rounds.numbers = agreed["serial"], agreed["numbers"]
        if rounds.parties_open:  # then what they opened led to the list, and they kept it
            rounds.kept = rounds.serial
    return tuple(agreed["words"])


def words_of_before(rounds: Rounds) -> tuple[str, ...]:
    """Returns the list that was agreed on before this start; empty if there is none."""
    words, path = _kept(rounds, KEPT_AS), rounds.store.folder / "vocabulary.txt"
    if words and (not path.is_file() or path.read_bytes() != "\n".join(words).encode()):
        raise ChangedFile(str(path), "it is not the list that the parties were told")
    return words


def recall_words(rounds: Rounds) -> None:
    """Goes on after what was asked about words before this start and is kept, so that the record of it stays."""
    for name in (COUNTED_AS, KEPT_AS):
        _kept(rounds, name)
    for number in range(max(ROUNDS_OF_WORDS, len(SHARES))):
        for name in (SUM_OF_WORDS, SUM_OF_BUCKETS):
            rounds.kept_answer(name.format(number))


def tell_words(rounds: Rounds, words: tuple[str, ...], *, candidates: bool = False) -> None:
    """Sets the words that questions are about, here and at the parties."""
    rounds.questions.adopt(words, candidates=candidates)
    rounds.tell(message_of(words, candidates=candidates))


def _candidates(rounds: Rounds) -> tuple[tuple[str, ...], int, Array]:
    """Asks for all words, the number of documents, and in how many of them each word occurs."""
    if rounds.agreement.plan.vocabulary.source == JOINT:
        return words_in(rounds.ask(JOINT, {}, keep=True))
    candidates = _kept(rounds, COUNTED_AS)
    if not candidates:  # they are counted by the parties if there are no more of them than these read
        candidates = merge_words(rounds.ask(WORDS, {}))
        size = len(message_of(candidates).words)
        limits = f"has room for {MOST_CANDIDATES} words of {MOST_WORD_BYTES} bytes"
        fits = len(candidates) <= MOST_CANDIDATES and size <= MOST_WORD_BYTES
        problem = f"{limits}; the parties have {len(candidates)} of {size}"
        require(fits, "[vocabulary]", "source", "union", problem)
    _keep(rounds, COUNTED_AS, candidates)
    tell_words(rounds, candidates, candidates=True)
    total = rounds.ask(FREQUENCIES, {}, keep=True).total
    assert total is not None
    return candidates, int(total["documents"][0]), total["frequencies"]


def _searched(rounds: Rounds) -> WordSearch:
    """Asks for sums of words, each about those that the sums before left open, and looks up a public list in them.

    What was opened is kept before the next sum is asked for: no party answers the same question twice.
    """
    plan, base = rounds.agreement.plan, rounds.agreement.base_words
    ranked = ranked_words(plan.vocabulary.language or USUAL_LANGUAGE, plan.tokeniser.make())  # the most frequent first
    search = WordSearch(tuple(dict.fromkeys((*ranked, *base))))
    for number in range(ROUNDS_OF_WORDS):
        search.take(rounds.ask_and_keep(SUM_OF_WORDS.format(number), JOINT, search.about))
    return search


def chosen(
    plan: Plan, candidates: tuple[str, ...], documents: int, frequencies: Array, base: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Returns the list that the plan's rule makes of an opened answer, with all words of a public list, `base`.

    Under a budget, the number of documents is unknown.
    """
    choice = plan.vocabulary
    share = choice.max_share if documents else int(frequencies.sum())
    try:
        found = choose_vocabulary(candidates, documents, frequencies, choice.max_words, choice.min_documents, share)
    except EmptyVocabulary:
        if not base:
            raise
        return base
    return tuple(sorted({*found, *base}))


def message_of(words: tuple[str, ...], *, candidates: bool = False) -> wire.Adopt:
    return wire.Adopt("\n".join(words).encode(), candidates)
