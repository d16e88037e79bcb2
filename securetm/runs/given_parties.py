"""What a caller of `federate` gives for each party, and the plan that fits: texts are read as `securetm run` reads a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from securetm.corpus.corpus import Corpus
from securetm.corpus.given_texts import SeenLanguage, language_kept, language_seen, warn_of_language
from securetm.federation.sources import embed_of, named_for
from securetm.models.given_documents import texts_in
from securetm.plans.profiles import ProfileFile
from securetm.plans.recommend import recommended_for
from securetm.plans.schema import Plan
from securetm.stages import Unwatched


def in_their_language(
    parties: Mapping[str, Corpus | Sequence[str]], settings: Mapping[str, Any], stacklevel: int
) -> tuple[Plan, Mapping[str, Corpus]]:
    """The plan and each party's documents. Where nobody named a language, stop words are those of the texts'.

    Under a budget they are so if each third of the texts shows it. Of a corpus, which was read before, nothing is changed.
    """
    found = recommended_for(None, settings)
    texts = {name: told for name, given in parties.items() if (told := texts_in(given)) is not None}
    read = {name: given for name, given in parties.items() if isinstance(given, Corpus)}
    budget = found.plan.profile_in(ProfileFile.read(found.plan.profile)).budget
    seen, own = language_seen(chain.from_iterable(texts.values())), found.plan.tokeniser.language
    if seen.foreign not in ("", own) and own is not None:
        taken = found.language_is_open and (seen.surely or budget is None)
        warn_of_language(_said(seen, taken=taken), stacklevel + 1)
        if taken:
            found = recommended_for(None, {**settings, "tokeniser.stop_words": seen.foreign})
    kept = language_kept(read.values()) if own is not None else SeenLanguage()
    if kept.foreign:
        warn_of_language(_kept(kept), stacklevel + 1)
    plan = found.plan
    if texts:
        how: dict[str, Any] = {"tokeniser": plan.tokeniser.make(), "embed": embed_of(plan, Unwatched())}
        read |= {name: named_for(Corpus.from_strings(some, name=name, **how), budget) for name, some in texts.items()}
    others: Mapping[str, Any] = parties  # what is neither is refused where a run begins
    return plan, {**others, **read}


def _said(seen: SeenLanguage, *, taken: bool) -> str:
    if taken:
        others = 'settings={"tokeniser.stop_words": "english"} takes others'
        return f"the texts read as {seen.name}, so its stop words are taken, and the plan says so ({others})"
    return (
        f"the texts read as {seen.name}, and the plan takes stop words of another language: function words will be among the "
        f'topics; settings={{"tokeniser.stop_words": "{seen.foreign}"}} takes those of {seen.name}'
    )


def _kept(seen: SeenLanguage) -> str:
    return (
        f"the documents of a corpus read as {seen.name} and were read without its stop words, so function words will be among "
        "the topics: give lists of texts instead, "
        f'or read them with tokeniser=securetm.Tokeniser(stop_words="{seen.foreign}", markup="dropped", quotes="dropped")'
    )
