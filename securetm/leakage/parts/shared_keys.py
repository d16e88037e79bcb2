"""Ciphertexts of a sum under the one key that all parties share, opened with that key where one of them gave it away.

It breaks no cipher: with the key it decrypts as every party can, and without one it reads the numbers that a ciphertext shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from securetm.aggregation.homomorphic.encrypted_sessions import pack_residues, unpack_residues
from securetm.aggregation.homomorphic.key_messages import FRESH, HEAD, KEY_ID, VERSION, key_id, unpack_secret
from securetm.aggregation.homomorphic.parameters import DEGREE, SEED, Fit, from_digits, real_or_whole
from securetm.aggregation.homomorphic.seal_library import RunningSum, decrypt_here
from securetm.aggregation.homomorphic.shared_key_sum import SharedKeySum
from securetm.contracts import Array, Terms
from securetm.federation.questions import TRAIN
from securetm.leakage.adversary_view import AdversaryView
from securetm.leakage.reading import SEALED, ReadVector, RoundQuestion, first_part, questions_in
from securetm.profiles import cohort_of

_KEY = "sum key of "  # under this name, with the session, a party keeps the key (aggregation/homomorphic/key_setup.py)
_FRESH = b"SH" + bytes([VERSION, FRESH])
_TAG = 32  # of the round, after the head


@dataclass(frozen=True)
class DecryptedAnswer:
    """One party's vector of one round, and whether a key opened it; else it is what the ciphertext shows."""

    heard: ReadVector
    with_key: bool


def opened_by_key(view: AdversaryView) -> Iterator[DecryptedAnswer]:
    """Every party's ciphertexts of every round of training, one after the other."""
    known = {serial: ask for serial, ask in questions_in(view).items() if ask.question == TRAIN}
    held = {key_id(value): value for insider in view.insiders for value in _keys(insider.secrets)}
    for message in view.seen.get(SEALED, ()):
        parcel = first_part(message) if message.serial in known else b""
        if parcel.startswith(_FRESH):
            secret = held.get(parcel[HEAD + _TAG : HEAD + _TAG + KEY_ID])
            numbers = _numbers(parcel, view, known[message.serial].terms, secret)
            yield DecryptedAnswer(_heard(known[message.serial], message.sender, numbers), secret is not None)


def _keys(secrets: Mapping[str, bytes]) -> list[bytes]:
    return [value for name, value in secrets.items() if name.startswith(_KEY) and value]


def _numbers(parcel: bytes, view: AdversaryView, terms: Terms, secret: bytes | None) -> Array:
    """The whole numbers behind a party's ciphertexts; without the key, the first halves of them as they are."""
    fit = _fit(view, terms)
    first, seeds = _halves(parcel, fit, terms)
    if secret is None:
        shown = first.astype(np.int64).ravel()[: terms.size]
        return shown - fit.modulus.value // 2
    alone = RunningSum(_sum(view).code, fit)  # of one party's ciphertexts, as the coordinator may always make it
    alone.add(first, seeds)
    rows = decrypt_here(_sum(view).code, fit, unpack_secret(secret, ""), *alone.polynomials())
    return from_digits(rows, fit, terms.size)


def _halves(parcel: bytes, fit: Fit, terms: Terms) -> tuple[Array, Array]:
    content = parcel[HEAD + _TAG + KEY_ID :]
    seeds = len(content) - SEED * fit.ciphertexts(terms.size)
    return unpack_residues(content[:seeds], fit, ""), np.frombuffer(content[seeds:], dtype=np.uint8).reshape(-1, SEED)


def at_random(parcel: bytes, view: AdversaryView, terms: Terms, rng: np.random.Generator) -> bytes:
    """The same message with ciphertexts of nothing: for the control of an attack."""
    if not parcel.startswith(_FRESH):
        return parcel
    fit = _fit(view, terms)
    count = fit.ciphertexts(terms.size)
    residues = rng.integers(0, fit.modulus.value, (count, DEGREE), dtype=np.uint64)
    return parcel[: HEAD + _TAG + KEY_ID] + pack_residues(residues, fit) + rng.bytes(SEED * count)


def _sum(view: AdversaryView) -> SharedKeySum:
    return cast(SharedKeySum, view.public.profile.aggregation)


def _fit(view: AdversaryView, terms: Terms) -> Fit:
    return _sum(view).fit(terms, cohort_of(view.public.profile, view.public.members))[1]


def _heard(ask: RoundQuestion, party: str, numbers: Array) -> ReadVector:
    return ReadVector(ask, party, real_or_whole(numbers, ask.terms.layout, ask.terms.grid))
