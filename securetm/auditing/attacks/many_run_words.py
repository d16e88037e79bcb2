"""How much epsilon one noised sum of words shows when it is made very often, with one known document in it or without.

It is `many_run_epsilon` on the question by which words are found: another row, another noise, another event. It tests one of
the sums, and not how words are looked up in them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from securetm.auditing.attacks.many_run_epsilon import ATTACK as OF_TRAINING
from securetm.auditing.attacks.many_run_epsilon import pose
from securetm.auditing.parts.canary_sums import CanarySumSource

ATTACK = replace(
    OF_TRAINING,
    name="many_run_words",
    title="Whether one noised sum of words shows more than its epsilon",
    pose=partial(pose, source_of=CanarySumSource.of_words_found),
    given=(
        "the profile's own mechanisms, as often as it likes; one known row of a sum of words, ten times as long as the clip's "
        "bound; all other documents, and the colluding parties' shares of noise"
    ),
    limits=(
        "the sums of words together: the accountant alone composes them, and the next one depends on those before",
        "sums as long as those of words: these have forty numbers, and the canary changes all of them",
        "what hides the answers (masks, keys): the attack adds them in the open, and has the sum that the protocol opens",
        "profiles under which each party names words by itself, or none does",
    ),
)
