"""How many words a corpus of so many documents can give: of a language's public list, and behind noise.

Both read only how many documents there are, before anything is asked or charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, sqrt

import numpy as np

from securetm.answers.route import compile_route
from securetm.contracts import Cohort, NamingThreshold, Profile
from securetm.corpus.corpus import Corpus
from securetm.corpus.public_words import USUAL_LENGTH, ExpectedWords, expected, public_shares
from securetm.errors import BadSetting, Mistake
from securetm.federation.questions import JOINT
from securetm.models.questions.word_sums import ROUNDS, USUAL_WORDS, WordSums, required
from securetm.plans.agreement import Agreement
from securetm.plans.profiles import cohort_of, count_of_parties, words_in_sums
from securetm.plans.schema import TokeniserChoice, VocabularyChoice
from securetm.wording import counted

MORE_WORDS = (
    "name a public list of words, which costs nothing (--vocabulary english, or FILE), bring together parties with more "
    "documents, or let words cost more: --set privacy.words= with a number below the profile's"
)
_LISTED, _RANK = 300_000, 10_000  # words that are looked up in a sum, and the place among them of a word that is asked about
_FOUND = 2.33  # deviations above the threshold at which 99 of 100 are found


def needed_by(agreement: Agreement, parties: int | None = None) -> NamingThreshold | None:
    """Returns the threshold of the run's selection of words; None where words are not selected."""
    if agreement.plan.vocabulary.source != JOINT or agreement.budget is None:
        return None
    from securetm.federation.budget.prices import with_words_noise  # with loss distributions, slow to import

    return threshold_of(with_words_noise(agreement).profile, parties)


def threshold_of(profile: Profile, parties: int | None) -> NamingThreshold | None:
    """Returns in how many documents a word must be under this profile, of one party or, in a sum, of all."""
    alone = next((found for part in profile.mechanisms if (found := part.naming_threshold()) is not None), None)
    if alone is None or not words_in_sums(profile):
        return alone
    members = tuple(f"party {n}" for n in range(count_of_parties(profile, parties)))
    unit = _deviation(profile, cohort_of(profile, members)) * sqrt(USUAL_WORDS)
    least = float(required(_LISTED)[_RANK])
    return NamingThreshold(ceil(least * unit), ceil((least + _FOUND) * unit), together=True)


def _deviation(profile: Profile, cohort: Cohort) -> float:
    """The deviation of the noise in the mean of all sums of words, in rows of one document: no gain by closed words counts."""
    route = compile_route(WordSums().terms, profile, cohort)
    central = max((step.mechanism.total_deviation(step.after) for step in route.steps), default=0.0)
    return max(central, route.terms.deviation) * (route.terms.grid or 1.0) / sqrt(ROUNDS)


def check_words(agreement: Agreement, corpora: Mapping[str, Corpus]) -> NamingThreshold | None:
    """Refuses corpora so small that even a word in all documents of a party would be found by luck only."""
    needed = needed_by(agreement, len(corpora))
    if needed is None:
        return None
    # A party's documents count, or its persons where the documents name them.
    units = [len(corpus) if corpus.persons is None else len(np.unique(corpus.persons)) for corpus in corpora.values()]
    most = sum(units) if needed.together else max(units, default=0)
    if most <= needed.threshold:
        raise Mistake(
            "no word can be found: {whose} has at most {most:document|documents}, and behind the noise a word "
            "needs {need} of them",
            hint=MORE_WORDS,
            whose=needed.whose,
            most=most,
            need=needed.found_from,
        )
    return needed


def in_words(needed: NamingThreshold) -> str:
    """Returns the sentence that the user reads before anything is spent."""
    about = "about " if needed.together else ""
    return (
        f"words are chosen behind noise: one that is in {about}{needed.found_from:,} documents of {needed.whose} is found in "
        f"99 of 100 selections, one in fewer than {about}{needed.threshold:,} by luck only"
    )


def expected_words(
    choice: VocabularyChoice, tokeniser: TokeniserChoice, documents: int, length: float = USUAL_LENGTH
) -> ExpectedWords | None:
    """Returns what can be expected of a language's list; None where the list is no language's."""
    code, made = choice.language, tokeniser.make()
    listed = choice.public_words(made) if code else None
    if code is None or listed is None:
        return None
    return expected(public_shares(listed, code, made), documents, length, choice.min_documents)


def expected_in_words(found: ExpectedWords, language: str) -> str:
    """Returns the sentence that the user reads before anything is spent."""
    occur, often = round(found.occurring), round(found.frequent)
    return (
        f"Of {found.listed:,} frequent words of the language {language}, {occur:,} can be expected in {found.documents:,} "
        f"documents of {found.length:g} words on any subject, {often:,} of them in {counted(found.least, 'document')} or more; "
        "documents on one subject have fewer."
    )


def asked_about(language: str, words: int, documents: int | None, length: float) -> tuple[ExpectedWords, str]:
    """Returns what the calculator says of a language's list: the numbers, and the sentence."""
    where, usual = "securetm budget profile", VocabularyChoice()
    choice = replace(usual, source="file", file=language, max_words=words)
    if choice.language is None:
        raise BadSetting(where, "--vocabulary", language, "is no language of which there is a list (english, german, de)")
    if documents is None:
        raise BadSetting(where, "--vocabulary", language, "needs the number of documents of all parties (--documents N)")
    if length <= 0:
        raise BadSetting(where, "--document-length", f"{length:g}", "must be above 0")
    found = expected_words(choice, TokeniserChoice(), documents, length)
    assert found is not None
    return found, expected_in_words(found, language)
