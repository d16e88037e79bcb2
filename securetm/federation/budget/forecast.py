"""The forecast of a run under a budget, from its plan alone, and what came true of it. It reads no document.

The number of documents is forecast with only where the plan states it: under a budget nobody may count them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, sqrt
from typing import Any

import numpy as np

from securetm.answers.route import compile_route
from securetm.contracts import Block, NamingThreshold, Profile, Terms, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.public_words import USUAL_LENGTH, ExpectedWords, expected, public_shares
from securetm.errors import BadSetting, Mistake
from securetm.federation.questions import JOINT, Questions
from securetm.models.questions.hidden_words import PARTS, BucketSums, required_of_cells
from securetm.models.questions.word_sums import ROUNDS, USUAL_WORDS, WordSums, required
from securetm.plans.agreement import Agreement
from securetm.plans.forecast import (
    BY_MOMENTS,
    BY_MOMENTS_ALONE,
    PLAIN,
    PUBLIC,
    Forecast,
    ForecastSetting,
    forecast,
    under_profile,
    written_for,
)
from securetm.plans.profiles import BLIND, cohort_of, count_of_parties, words_in_sums
from securetm.plans.schema import MOMENTS, TokeniserChoice, VocabularyChoice, hides_documents
from securetm.wording import counted

MORE_WORDS = (
    "name a public list of words, which costs nothing (--vocabulary english, or FILE), bring together parties with more "
    "documents, or let words cost more: --set privacy.words= with a number below the profile's"
)
_LISTED, _RANK = 300_000, 10_000  # words that are looked up in a sum, and the place among them of a word that is asked about
_FOUND = 2.33  # deviations above the threshold at which 99 of 100 are found


def needed_by(agreement: Agreement, parties: int | None = None) -> NamingThreshold | None:
    """Returns the threshold of the run's selection of words; None where words are not selected."""
    source = agreement.plan.vocabulary.source
    if source not in (JOINT, BLIND) or agreement.budget is None:
        return None
    from securetm.federation.budget.prices import with_words_noise  # with loss distributions, slow to import

    buckets = Questions(agreement).buckets if source == BLIND else 0
    return threshold_of(with_words_noise(agreement).profile, parties, buckets)


def threshold_of(profile: Profile, parties: int | None, buckets: int = 0) -> NamingThreshold | None:
    """Returns in how many documents a word must be under this profile, of one party or, in a sum, of all.

    With so many `buckets`, words are hidden.
    """
    alone = next((found for part in profile.mechanisms if (found := part.naming_threshold()) is not None), None)
    if alone is None or not words_in_sums(profile):
        return alone
    members = tuple(f"party {n}" for n in range(count_of_parties(profile, parties)))
    asked = replace(BucketSums(buckets).terms, part=1 / ROUNDS) if buckets else WordSums().terms  # the whole share either way
    route = compile_route(asked, profile, cohort_of(profile, members))
    # The deviation of the noise in the mean of all sums of words, in rows of one document: no gain by closed words counts.
    central = max((step.mechanism.total_deviation(step.after) for step in route.steps), default=0.0)
    unit = max(central, route.terms.deviation) * (route.terms.grid or 1.0) / sqrt(ROUNDS) * sqrt(USUAL_WORDS)
    least = required_of_cells(buckets * PARTS) if buckets else float(required(_LISTED)[_RANK])
    return NamingThreshold(ceil(least * unit), ceil((least + _FOUND) * unit), together=True)


def documents_needed_by(needed: NamingThreshold | None, parties: int) -> float:
    """Returns in how many documents of all parties a word is found; 0 where words are not selected."""
    return 0.0 if needed is None else float(needed.found_from * (1 if needed.together else parties))


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
    choice: VocabularyChoice, tokeniser: TokeniserChoice, documents: int, length: float = USUAL_LENGTH, on_list: float = 0.0
) -> ExpectedWords | None:
    """Returns what can be expected of a language's list; None where the list is no language's.

    `on_list` says instead of `length` how many words of a document are on the list; 0 says nothing.
    """
    code, made = choice.language, tokeniser.make()
    listed = choice.public_words(made) if code else None
    if code is None or listed is None:
        return None
    shares = public_shares(listed, code, made)
    if on_list and shares.any():
        length = max(1.0, float(round(on_list / float(shares.sum()))))
    return expected(shares, documents, length, choice.min_documents)


def expected_in_words(found: ExpectedWords, language: str) -> str:
    occur, often = round(found.occurring), round(found.frequent)
    if occur == often:
        which = f"All {found.listed:,}" if often == found.listed else f"{often:,} of {found.listed:,}"
        return (
            f"{which} frequent words of the language {language} can be expected in {counted(found.least, 'document')} or more "
            f"of {found.documents:,} documents of {found.length:g} words on any subject; documents on one subject have fewer."
        )
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
    found = expected_words(choice, TokeniserChoice(), documents, length)
    assert found is not None
    return found, expected_in_words(found, language)


def why_no_forecast(agreement: Agreement) -> str:
    """Why nothing is forecast of a run, and what to do about it; nothing where it is."""
    if not hides_documents(agreement.budget):
        return "it has no budget for documents or persons"
    if not agreement.plan.training.documents:
        return "under a budget nobody may count the documents; --set training.documents=N says about how many there are"
    if agreement.unit is Unit.PERSON and not agreement.plan.training.persons:
        return "nobody may count the persons either; --set training.persons=N says about how many there are"
    return ""


def forecast_of(agreement: Agreement, parties: int) -> Forecast | None:
    """The forecast of a run, its noise being calibrated; None where the plan does not say how many documents there are."""
    if why_no_forecast(agreement):
        return None
    training = agreement.plan.training
    each = training.documents / (training.persons or training.documents)
    return forecast(setting_of(agreement, parties, training.documents, training.document_length, each))


def setting_of(agreement: Agreement, parties: int, documents: int, length: float = 0.0, each: float = 1.0) -> ForecastSetting:
    """A run by public numbers, on so many documents of such a length, of which a person has `each`; 0: nobody says how long."""
    plan, budget = agreement.plan, agreement.budget
    assert budget is not None
    start = PLAIN if agreement.vectors is None else PUBLIC
    if plan.training.start == MOMENTS:
        start = BY_MOMENTS_ALONE if agreement.vectors is None else BY_MOMENTS
    needed = needed_by(agreement, parties)
    words, general = max(len(agreement.longest_list), 2), plan.vocabulary.language is not None
    counts = Terms((Block("counts", (agreement.model.most_shown_topics, len(agreement.longest_list))),), bits=64)
    setting = ForecastSetting(
        documents=documents,
        epsilon=budget.epsilon,
        delta=budget.delta,
        model=plan.model.name,
        start=start,
        words=words,
        topics=agreement.model.most_shown_topics,
        rounds=plan.training.rounds,
        length=length,
        general_list=general,
        documents_per_person=each,
        noise_factor=under_profile(agreement.profile, parties),
        noise=plan.privacy.noise,
        found_from=documents_needed_by(needed, parties),
        found_together=needed is None or needed.together,
        radius=min((mechanism.row_radius(counts) for mechanism in agreement.profile.mechanisms), default=1.0),
        listed=len(agreement.base_words),
    )
    return replace(setting, written=written_for(setting))


def forecast_record(agreement: Agreement, parties: int, found: Mapping[str, Any]) -> dict[str, Any]:
    """The forecast of a run and what came true of it, for its result. `found` says how useful the model turned out."""
    told = forecast_of(agreement, parties)
    if told is None or told.held_out is None:
        return {"forecast": told.record() if told else None, "came_true": None}
    gain = ((found.get("baseline") or {}).get("gain") or {}).get("value")
    if gain is None:
        return {"forecast": told.record(), "came_true": None}
    inside = told.held_out.low <= gain <= told.held_out.high
    return {"forecast": told.record(), "came_true": {"held_out": gain, "inside": inside, "useful": found.get("useful")}}
