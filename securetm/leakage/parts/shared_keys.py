"""Ciphertexts under the secret key that all parties share, opened with that key if a colluding party gave it away.

No cipher is broken: with the key every party could decrypt, and without it the numbers of a ciphertext are read as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from securetm.aggregation.homomorphic.encrypted_sessions import unpack_residues
from securetm.aggregation.homomorphic.parameters import SEED, Fit, from_digits, real_or_whole
from securetm.aggregation.homomorphic.seal_library import RunningSum, decrypt_here
from securetm.aggregation.homomorphic.shared_key_sum import SharedKeySum
from securetm.aggregation.homomorphic.sum_key import KEY_ID, SumKind, key_id, unpack_secret
from securetm.contracts import Array, Terms
from securetm.federation.questions import TRAIN
from securetm.leakage.adversary_view import AdversaryView
from securetm.leakage.parts.opened_answers import OpenedAnswer
from securetm.leakage.reading import SEALED, ReadVector, first_part, questions_in
from securetm.profiles import cohort_of
from securetm.sessions.framing import HASH, head

_KEY = "sum key"  # under this name a party keeps the key, behind a hash (aggregation/homomorphic/key_setup.py)
_FRESH = head(SumKind.FRESH)
_NAME = 4 + HASH  # where the name of the key begins: after the head and the round
_BODY = _NAME + KEY_ID


def opened_by_key(view: AdversaryView) -> Iterator[OpenedAnswer]:
    """Every party's ciphertexts of every round of training."""
    known = {serial: ask for serial, ask in questions_in(view).items() if ask.question == TRAIN}
    held = {key_id(value): value for insider in view.insiders for value in _keys(insider.secrets)}
    for message in view.seen.get(SEALED, ()):
        parcel = first_part(message) if message.serial in known else b""
        if parcel.startswith(_FRESH):
            secret = held.get(parcel[_NAME:_BODY])
            ask = known[message.serial]
            blocks = real_or_whole(_numbers(parcel, view, ask.terms, secret), ask.terms.layout, ask.terms.grid)
            yield OpenedAnswer(ReadVector(ask, message.sender, blocks), secret is not None)


def _keys(secrets: Mapping[str, bytes]) -> list[bytes]:
    return [secrets[_KEY][HASH:]] if secrets.get(_KEY) else []


def _numbers(parcel: bytes, view: AdversaryView, terms: Terms, secret: bytes | None) -> Array:
    """The whole numbers in a party's ciphertexts; without the key, the ciphertexts' first halves."""
    fit = _fit(view, terms)
    first, seeds = _halves(parcel, fit, terms)
    if secret is None:
        shown = first.astype(np.int64).ravel()[: terms.size]
        return shown - fit.modulus.value // 2
    alone = RunningSum(_sum(view).code, fit)  # of one party's ciphertexts; the coordinator may always add these
    alone.add(first, seeds)
    rows = decrypt_here(_sum(view).code, fit, unpack_secret(secret, ""), *alone.polynomials())
    return from_digits(rows, fit, terms.size)


def _halves(parcel: bytes, fit: Fit, terms: Terms) -> tuple[Array, Array]:
    content = parcel[_BODY:]
    seeds = len(content) - SEED * fit.ciphertexts(terms.size)
    return unpack_residues(content[:seeds], fit, ""), np.frombuffer(content[seeds:], dtype=np.uint8).reshape(-1, SEED)


def _sum(view: AdversaryView) -> SharedKeySum:
    return cast(SharedKeySum, view.public.profile.aggregation)


def _fit(view: AdversaryView, terms: Terms) -> Fit:
    return _sum(view).fit(terms, cohort_of(view.public.profile, view.public.members))[1]
