"""Ciphertexts under the secret key that all parties share, opened with that key if a colluding party passed it on.

It breaks no cipher: with the key every party could decrypt. Without the key it reads the numbers of a ciphertext as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from securetm.aggregation.homomorphic.encrypted_sessions import unpack_residues
from securetm.aggregation.homomorphic.parameters import SEED, Fit, from_digits, real_or_whole
from securetm.aggregation.homomorphic.seal_library import Code, RunningSum, decrypt_here
from securetm.aggregation.homomorphic.shared_key_sum import SharedKeySum
from securetm.aggregation.homomorphic.sum_key import KEY_ID, SumKind, key_id, unpack_secret
from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.parts.opened_answers import OpenedAnswer
from securetm.auditing.reading import SEALED, ReadVector, first_parts
from securetm.contracts import Array
from securetm.federation.questions import TRAIN
from securetm.plans.profiles import cohort_of
from securetm.sessions.framing import HASH, head

_KEY = "sum key"  # under this name a party keeps the key, behind a hash (aggregation/homomorphic/key_setup.py)
_FRESH = head(SumKind.FRESH)
_NAME = 4 + HASH  # where the name of the key begins: after the head and the round
_BODY = _NAME + KEY_ID


def opened_by_key(view: AdversaryView) -> Iterator[OpenedAnswer]:
    """Every party's ciphertexts of every round of training."""
    kept = (insider.secrets.get(_KEY, b"")[HASH:] for insider in view.insiders)
    keys = {key_id(value): value for value in kept if value}
    aggregation = cast(SharedKeySum, view.public.profile.aggregation)
    cohort = cohort_of(view.public.profile, view.public.members)
    for asked, sender, parcel in first_parts(view, SEALED):
        if asked.question == TRAIN and parcel.startswith(_FRESH):
            secret = keys.get(parcel[_NAME:_BODY])
            fit = aggregation.fit(asked.terms, cohort)[1]
            numbers = _numbers(parcel[_BODY:], aggregation.code, fit, asked.terms.size, secret)
            blocks = real_or_whole(numbers, asked.terms.layout, asked.terms.grid)
            yield OpenedAnswer(ReadVector(asked, sender, blocks), secret is not None)


def _numbers(content: bytes, code: Code, fit: Fit, size: int, secret: bytes | None) -> Array:
    """The whole numbers in a party's ciphertexts; without the key, the ciphertexts' first halves."""
    ends = len(content) - SEED * fit.ciphertexts(size)
    first = unpack_residues(content[:ends], fit, "")
    if secret is None:
        shown = first.astype(np.int64).ravel()[:size]
        return shown - fit.modulus.value // 2
    alone = RunningSum(code, fit)  # of one party's ciphertexts; the coordinator may always add these
    alone.add(first, np.frombuffer(content[ends:], dtype=np.uint8).reshape(-1, SEED))
    rows = decrypt_here(code, fit, unpack_secret(secret, ""), *alone.polynomials())
    return from_digits(rows, fit, size)
