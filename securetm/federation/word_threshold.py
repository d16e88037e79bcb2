"""How many documents a word needs to be found, where words are selected behind noise. Refuses corpora in which no word can be.

It reads only how many documents there are. A simulation uses it, which holds all corpora, before anything is asked or charged.
A party tells nobody how many documents it has.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from securetm.agreement import Agreement
from securetm.contracts import NamingThreshold
from securetm.corpus.corpus import Corpus
from securetm.federation.paying import with_words_noise
from securetm.federation.paying_errors import NoWordCanBeFound
from securetm.federation.questions import JOINT


def needed_by(agreement: Agreement) -> NamingThreshold | None:
    """Returns the threshold of the run's selection of words; None where words are not selected."""
    if agreement.plan.vocabulary.source != JOINT or agreement.budget is None:
        return None
    mechanisms = with_words_noise(agreement).profile.mechanisms
    return next((found for part in mechanisms if (found := part.naming_threshold()) is not None), None)


def check_words(agreement: Agreement, corpora: Mapping[str, Corpus]) -> NamingThreshold | None:
    """Refuses corpora so small that even a word in all documents of a party would be found by luck only."""
    needed = needed_by(agreement)
    if needed is None:
        return None
    # A party's documents count, or its persons where the documents name them.
    units = (len(corpus) if corpus.persons is None else len(np.unique(corpus.persons)) for corpus in corpora.values())
    most = max(units, default=0)
    if most <= needed.threshold:
        raise NoWordCanBeFound(most, needed.found_from)
    return needed


def in_words(needed: NamingThreshold) -> str:
    """Returns the sentence that the user reads before anything is spent."""
    return (
        f"words are chosen behind noise: one that is in {needed.found_from:,} documents of one party is found in 99 of 100 "
        f"selections, one in fewer than {needed.threshold:,} by luck only"
    )
