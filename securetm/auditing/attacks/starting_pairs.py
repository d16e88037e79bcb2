"""What the pairs of words tell with which a training may begin: of rare words, of canaries, and of the noise in their sum.

The attacks are those on the sums of a training; they read the one answer before it instead. Runs that begin otherwise have no
such answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from securetm.auditing.attack import EVERY_MODEL
from securetm.auditing.attacks.many_run_epsilon import ATTACK as OF_NOISE
from securetm.auditing.attacks.many_run_epsilon import pose
from securetm.auditing.attacks.one_run_curve import ATTACK as OF_CANARIES
from securetm.auditing.attacks.rare_rows import ATTACK as OF_RARE_ROWS
from securetm.auditing.parts.canary_sums import CanarySumSource
from securetm.auditing.reading import ANSWER, TOTAL
from securetm.federation.questions import PAIRS

RARE_PAIRS = replace(
    OF_RARE_ROWS,
    name="rare_pairs",
    title="Words of one document from the pairs of words with which a training begins",
    models=EVERY_MODEL,
    questions=(PAIRS,),
)

ONE_RUN_PAIRS = replace(
    OF_CANARIES,
    name="one_run_pairs",
    title="Which canaries took part in the pairs of words with which a training begins",
    given="every other document, every canary and its party, and the noised pairs of words, or their sum; never a coin",
    either=(ANSWER, TOTAL),
    models=EVERY_MODEL,
    questions=(PAIRS,),
    limits=(
        "the rounds after that answer, which have noise of their own: it tests what the first answer alone shows",
        "noise that is half of what it should be: on average an ideal attacker's bound is below the claim even then",
        "claims about words: noise that hides each word of a document does not hide that the document is there",
        "documents that are not made to be found",
    ),
)

MANY_RUN_PAIRS = replace(
    OF_NOISE,
    name="many_run_pairs",
    title="Whether the noised pairs of words with which a training begins show more than their epsilon",
    pose=partial(pose, source_of=CanarySumSource.of_start),
    questions=(PAIRS,),
)
