"""What parties sent, as those who help an adversary let it be read: in the clear, or less the masks whose keys they gave.

It reads no store: an insider's keys lie in the view. Ciphertexts under a shared key are read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from securetm.clipped_sum import blocks_of
from securetm.contracts import Array, Terms
from securetm.leakage.adversary_view import AdversaryView
from securetm.leakage.parts.mask_keys import MaskKeys, mask_keys
from securetm.leakage.reading import ANSWER, SEALED, ReadVector, first_part, party_vectors, questions_in, vector_at


@dataclass(frozen=True)
class OpenedAnswer:
    """One party's vector of one round, and whether it is its own whole, or still lies under a mask."""

    heard: ReadVector
    whole: bool


def opened_answers(view: AdversaryView) -> Iterator[OpenedAnswer]:
    """Every party's vector of each round: plain, or as far as the helpers' keys open it."""
    helpers = {insider.name for insider in view.insiders}
    if view.seen.get(ANSWER):
        yield from (OpenedAnswer(heard, heard.party in helpers) for heard in party_vectors(view))
        return
    keys, known, members = _keys(view), questions_in(view), view.public.members
    for message in view.seen.get(SEALED, ()):
        parcel = first_part(message) if message.serial in known else b""
        if parcel and vector_at(parcel, known[message.serial].terms):
            ask, place = known[message.serial], members.index(message.sender)
            numbers = keys.off(parcel, ask.terms)
            yield OpenedAnswer(ReadVector(ask, message.sender, _blocks(numbers, ask.terms)), keys.opens(place, parcel))


def _keys(view: AdversaryView) -> MaskKeys:
    members = view.public.members
    secrets = {members.index(insider.name): insider.secrets for insider in view.insiders}
    return mask_keys(secrets, [first_part(m) for m in view.seen.get(SEALED, ())], len(members))


def _blocks(numbers: Array, terms: Terms) -> dict[str, Array]:
    return blocks_of(numbers * terms.grid if terms.grid else numbers, terms)
