"""How a training begins, where a plan leaves that to its profile and its model: at which topics, and by which vectors.

It completes the [training] section of a plan; `reading.py` does the rest. No document is read here.
"""

from __future__ import annotations

import dataclasses

from securetm.contracts import Profile, TopicModel, Unit
from securetm.corpus.word_vectors import GLOVE, VectorSource, installed_vectors
from securetm.models.model_errors import TooManyPairs
from securetm.models.moments import MOST_WORDS, Moments
from securetm.models.rounds_rule import FROM_PLAIN, FROM_PUBLIC, RoundsRule
from securetm.models.start_share import USUAL_START
from securetm.plans.profiles import asks_first_under, make_model
from securetm.plans.schema import MOMENTS, NO_VECTORS, PLAIN, PUBLIC, Plan, TrainingChoice, hides_documents
from securetm.settings import require


def with_start(plan: Plan, profile: Profile) -> TrainingChoice:
    """The [training] section. Where it does not say how to begin, the rule for short texts may ask for topics of moments."""
    chosen, words = plan.training, most_words(plan)
    if not _is_open(plan, profile) or words > MOST_WORDS:
        return chosen
    topics = int(plan.model.settings["n_topics"])
    first = asks_first_under(
        profile, chosen.documents, chosen.document_length, topics, words, parties=plan.federation.in_a_round
    )
    return dataclasses.replace(chosen, start=MOMENTS) if first else chosen


def _is_open(plan: Plan, profile: Profile) -> bool:
    """Whether the plan leaves open how to begin, tells about its documents, and can ask a question before the training."""
    chosen, model = plan.training, make_model(plan.model.name, plan.model.settings)
    said = chosen.start or chosen.vectors or chosen.continue_from
    told = bool(chosen.documents and chosen.document_length) and plan.privacy.unit != Unit.PERSON.value
    by_rule = model.short_by_pairs and bool(model.budget_rounds) and model.starts_public and not model.needs_public
    asked = hides_documents(profile.budget) and profile.aggregation.opened_by == "coordinator"
    return not said and told and by_rule and asked


def with_vectors(plan: Plan, profile: Profile) -> TrainingChoice:
    """The [training] section with the vectors of a public start and their digest, where the plan asks for one."""
    chosen, model = plan.training, make_model(plan.model.name, plan.model.settings)
    if chosen.start == MOMENTS:
        return _with_moments(plan, model, profile)
    if chosen.start != PUBLIC and not chosen.vectors and not model.needs_public:
        return chosen
    problem = f"cannot be public for {plan.model.name}, which is no table of topics"
    require(model.starts_public, "[training]", "start", PUBLIC, problem)
    problem = "cannot be plain for a decoder through word vectors"
    require(chosen.start in ("", PUBLIC), "[training]", "start", chosen.start, problem)
    source = VectorSource(chosen.vectors) if chosen.vectors else installed_vectors() or VectorSource(GLOVE)
    digest = chosen.vectors_digest or source.digest  # a role that begins nothing need not have the vectors
    return dataclasses.replace(chosen, start=PUBLIC, vectors=source.name, vectors_digest=digest)


def _with_moments(plan: Plan, model: TopicModel, profile: Profile) -> TrainingChoice:
    """The [training] section of a plan that begins at topics of moments: the question's share of the budget, and the vectors.

    Where it names no vectors, the coordinator reads those that are installed at its place, as it does for a public start.
    """
    chosen, name = plan.training, plan.model.name

    def refuse_if(reason: bool, problem: str) -> None:
        require(not reason, "[training]", "start", MOMENTS, problem)

    refuse_if(name == Moments.name, "is what the model moments does by itself: leave the start out")
    refuse_if(not model.starts_public or model.needs_public, f"cannot be had for {name}, which is no table of topics")
    by_parties, by_word = profile.aggregation.opened_by == "parties", plan.privacy.unit == "word"
    refuse_if(by_parties, f"cannot be had under {profile.name}, where only the parties open sums: take --start public")
    refuse_if(by_word, f"cannot be had under {profile.name}, which adds noise to single words and not to sums")
    words = most_words(plan)
    if words > MOST_WORDS:
        raise TooManyPairs(words, MOST_WORDS)
    share = asked_first(chosen) if profile.budget is not None else chosen.start_share
    refuse_share = "means nothing, because no budget is spent"
    require(profile.budget is not None or not share, "[training]", "start_share", share, refuse_share)
    named = chosen.vectors not in ("", NO_VECTORS)
    digest = chosen.vectors_digest or (VectorSource(chosen.vectors).digest if named else "")
    return dataclasses.replace(chosen, start_share=share, vectors_digest=digest)


def asked_first(chosen: TrainingChoice) -> float:
    """The share of a budget that pays for the question before the training; 0 where none is asked."""
    return (chosen.start_share or USUAL_START) if chosen.start == MOMENTS else 0.0


def rounds_rule(chosen: TrainingChoice) -> RoundsRule:
    """By which rule a training that begins so is asked; as from public topics, where the plan leaves the start open."""
    return FROM_PLAIN if chosen.start == PLAIN else FROM_PUBLIC


def most_words(plan: Plan) -> int:
    """The number of words of a public list, or the most that the parties find together."""
    listed = plan.vocabulary.public_words(plan.tokeniser.make()) if plan.vocabulary.source == "file" else None
    return len(listed) if listed else plan.vocabulary.max_words
