"""Reads the documents of a simulation and deals them out to the parties. No party is asked anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array, Budget, Unit
from securetm.corpus import partitions
from securetm.corpus.building import Embed
from securetm.corpus.corpus import Corpus
from securetm.corpus.languages import language_name
from securetm.corpus.readers import Glance, glance, open_corpus
from securetm.corpus.records import Columns
from securetm.plans.profiles import ProfileFile, make_model
from securetm.plans.schema import CorpusChoice, Plan
from securetm.settings import require
from securetm.stages import Stages

DOCSTRINGS = "docstrings"


def corpora_of(plan: Plan, stages: Stages) -> Mapping[str, Corpus]:
    choice, shown, embed = plan.corpus, Shown(stages), embed_of(plan, stages)
    if choice.source == DOCSTRINGS:
        from securetm.corpus import docstrings  # a party reads files

        most = docstrings.PARTIES
        problem = f"must be at most {most}, the packages whose docstrings are read"
        require(choice.parties <= most, "[corpus]", "parties", choice.parties, problem)
        named = plan.embeddings.embedder().identity if embed else ""
        packages = docstrings.docstring_parties(
            on_progress=lambda name, *now: shown(f"reading the docstrings of {name}", *now), embed=embed, embedded_as=named
        )
        return dict(list(packages.items())[: choice.parties])  # or all that are installed, if these are fewer
    budget = plan.profile_in(ProfileFile.read(plan.profile)).budget
    return partition(read_under(plan, budget, choice.source, stages, **vars(columns_of(choice))), plan)


def columns_of(choice: CorpusChoice) -> Columns:
    return Columns(**{one.name: getattr(choice, one.name) or None for one in fields(Columns)})


_NOTHING_SEEN = Glance(None, False)


def foreign_language(plan: Plan, source: str | Path, columns: Columns) -> Glance:
    """What these documents show, where the plan takes stop words of another language than theirs; else nothing.

    It is told to whoever holds the documents, and sent to nobody.
    """
    if str(source) == DOCSTRINGS or plan.tokeniser.language is None:
        return _NOTHING_SEEN
    found = glance(source, columns)
    return _NOTHING_SEEN if found.language == plan.tokeniser.language else found


def language_taken(code: str) -> str:
    """Why a plan names the language that documents were seen to have: a comment at its line."""
    return (
        f"the documents read as {language_name(code)}, each third of them: the plan takes that for public, and everybody who "
        "gets it learns it"
    )


def language_said(code: str, plan: Plan, *, taken: bool) -> str:
    """What whoever holds documents in another language than the plan's is told, and nobody else."""
    spoken = language_name(code)
    if taken:
        others = "--set tokeniser.stop_words=english takes others"
        return f"The documents read as {spoken}, so its stop words are taken, and the plan says so ({others})."
    meant = language_name(plan.tokeniser.language or code)
    return (
        f"The documents read as {spoken}, and the plan takes stop words of {meant}: function words will be among the topics. "
        f"Stop words of {spoken}: --set tokeniser.stop_words={code}, or the same under [tokeniser] of everybody's plan."
    )


def read_under(plan: Plan, budget: Budget | None, source: str | Path, stages: Stages, **columns: Any) -> Corpus:
    """Reads documents as a role of this plan does: with its tokeniser, and with embeddings that its sentence model makes."""
    embed, made_here = embed_of(plan, stages), False

    def noticed(texts: Sequence[str]) -> Array:
        nonlocal made_here
        made_here = True
        assert embed is not None
        return embed(texts)

    how: dict[str, Any] = {"tokeniser": plan.tokeniser.make(), "embed": noticed if embed else None}
    reading = partial(Shown(stages), f"reading {Path(source).name}")
    corpus = open_corpus(source, on_progress=reading, **how, **columns)
    if embed is not None and not made_here:
        check_brought(corpus, plan, budget)
    return named_for(corpus, budget)


def named_for(corpus: Corpus, budget: Budget | None) -> Corpus:
    """Returns the documents under keys that are the same in neighbours of the corpus.

    Keys of what documents say are, where whole documents come and go. Where single words change, keys of places are.
    """
    return corpus.named_by_place() if budget is not None and budget.unit is Unit.WORD else corpus


def embed_of(plan: Plan, stages: Stages) -> Embed | None:
    """What makes embeddings of texts under this plan; None where its model reads none, or documents must bring theirs."""
    if not plan.embeddings.model or not make_model(plan.model.name, plan.model.settings).embedding_size:
        return None
    return partial(plan.embeddings.embedder().embed, on_progress=partial(Shown(stages), "embedding texts"))


def check_brought(corpus: Corpus, plan: Plan, budget: Budget | None) -> None:
    """Refuses under a budget embeddings that documents bring, where the plan says that its sentence model makes them.

    What made them may have learned from other documents here, so that one document's row would tell of others.
    """
    if budget is None or plan.origins.embeddings or not len(corpus):
        return
    made_by = corpus.documents.embedded_as
    brought = corpus.embedding_width > 0 and (not made_by or made_by != plan.embeddings.embedder().identity)
    named = 'name their column (--embedding COLUMN) and say why what made them is public (--public embeddings="WHY")'
    instead = f"{named}, or leave the column out"
    problem = "makes no embedding here: the documents bring their own, and nobody says what made them"
    require(not brought, "[embeddings]", "model", plan.embeddings.model, problem, instead=instead)


def partition(corpus: Corpus, plan: Plan) -> Mapping[str, Corpus]:
    """Deals the documents out as the plan says. Persons stay whole, unless the plan protects single documents of theirs."""
    choice, seed = plan.corpus, plan.seed
    whole = plan.privacy.unit != Unit.DOCUMENT.value
    if choice.partition == "column":
        by_label = not choice.party and corpus.parties is None and corpus.labels is not None
        return partitions.by_column(corpus, "label" if by_label else "party")
    if choice.partition == "equal":
        return partitions.equal(corpus, choice.parties, seed, persons_whole=whole)
    return partitions.dirichlet(corpus, choice.parties, choice.alpha, seed, persons_whole=whole)


def words_of_a_sentence(corpora: Mapping[str, Corpus]) -> float:
    """Returns the median length of a sentence in words; a document without sentence ends is one sentence."""
    first = [next(corpus.parts())[1].sentence_ends for corpus in corpora.values() if corpus.has_sentences]  # they tell enough
    lengths = [np.diff(ends, prepend=0) for ends in first]
    whole = np.concatenate(lengths) if lengths else np.zeros(0)
    return float(np.median(whole)) if len(whole) else 0.0


class Shown:
    """Shows how far a file is read: begins a stage whenever the title or the total changes."""

    def __init__(self, stages: Stages) -> None:
        self._stages, self._now = stages, ("", -1)

    def __call__(self, title: str, done: int, total: int) -> None:
        if (title, total) != self._now:
            self._stages.stage(title, total)
            self._now = title, total
        self._stages.step(done)
