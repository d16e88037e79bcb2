"""Sentences about documents and parties that a run leaves out. This module counts nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from securetm.wording import counted

MOST_NAMES = 8  # in one sentence


def left_out_in_words(facts: Mapping[str, Any], unlisted: Mapping[str, int]) -> Iterator[str]:
    """Documents that were dropped, parties without documents, and documents that name no party.

    `unlisted` holds for each party the number of documents without a word of the public list, if there is one.
    """
    source, dropped = facts["source"], facts["dropped"]
    reasons: Counter[str] = Counter()
    for one in [*source["dropped"], *(one for each in dropped.values() for one in each)]:
        reasons[one["reason"]] += one["documents"]
    if reasons:
        said = ", ".join(f"{documents:,} {reason}" for reason, documents in sorted(reasons.items(), key=lambda one: -one[1]))
        yield f"Left out of {counted(source['read'], 'document')}: {said}."
        lost = {name: documents for name, each in dropped.items() if (documents := sum(one["documents"] for one in each))}
        if lost:
            named = [f"{name} had {lost[name]:,}" for name in sorted(lost, key=lambda name: -lost[name])]
            yield f"Of these, {_listed(named)}."
    if gone := sorted({one["party"] for one in source["dropped"] if "party" in one}):
        yield f"No document is left of {_listed(gone)}, which {'takes' if len(gone) == 1 else 'take'} no part."
    if without := source["without_a_party"]:
        verb = "names no party; it is" if without == 1 else "name no party; they are"
        yield f"{counted(without, 'document')} {verb} held by a party called “{source['unnamed']}”."
    if several := sum(unlisted.values()):
        verb = "has" if several == 1 else "have"
        yield f"Of the documents that are left, {several:,} {verb} no word of the list, and will take no part."


def _listed(names: Sequence[str]) -> str:
    """The first names, and the number of others."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
