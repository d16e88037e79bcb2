"""What parties sent, as far as the keys of colluding parties open it: in the clear, or without the masks of known keys.

Of a helper's vector all masks are removed, of another party's vector those that it shares with helpers. No cipher is broken:
under an unknown mask the numbers are read as they are. Keys come from the view, not from a store. Ciphertexts under a shared
key are read in `shared_keys`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.messages import HEADER_SIZE, Header, Kind, Place, read_header, read_place, read_share
from securetm.aggregation.masked.party_round import pair_seed, self_seed
from securetm.aggregation.masked.stored_setups import Prepared
from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.reading import ANSWER, SEALED, ReadVector, first_parts, party_vectors, vector_at
from securetm.clipped_sum import blocks_of
from securetm.contracts import PART, Array, Terms
from securetm.sessions.framing import HASH, Reader
from securetm.sessions.identities import KEY, SIGNATURE
from securetm.sessions.sealing import shared_secret
from securetm.sessions.session_memory import unpacked

_SETUP = "masked setup"  # under this name a party keeps its prekeys (aggregation/masked/prekeys.py)
_HELPER = "a colluding party"


@dataclass(frozen=True)
class OpenedAnswer:
    """One party's vector of one round, and whether it is in the clear. If not, its numbers are those under the masks."""

    vector: ReadVector
    in_clear: bool
    surplus: tuple[bytes, ...] = ()  # what reveals the parts of its noise that were taken off the sum


def opened_answers(view: AdversaryView) -> Iterator[OpenedAnswer]:
    """Every party's vector of each round: in the clear, or as far as the helpers' keys open it."""
    if view.seen.get(ANSWER):
        yield from (OpenedAnswer(vector, True) for vector in party_vectors(view))
        return
    members, sealed = view.public.members, list(first_parts(view, SEALED))
    secrets = {members.index(insider.name): insider.secrets for insider in view.insiders}
    parcels = [parcel for _, _, parcel in sealed]
    keys, told = _mask_keys(secrets, parcels, len(members)), dict(_told(parcels, len(members)))
    for asked, sender, parcel in sealed:
        if vector_at(parcel, asked.terms):
            blocks = blocks_of(keys.off(parcel, asked.terms) * (asked.terms.grid or 1), asked.terms)
            place, at = members.index(sender), read_header(parcel, _HELPER).at
            yield OpenedAnswer(ReadVector(asked, sender, blocks), keys.opens(place, parcel), told.get((at, place), ()))


@dataclass(frozen=True)
class _MaskKeys:
    """The prekeys of the helpers, by place in the roster, and the self-mask seeds that the round itself opened."""

    setups: Mapping[int, Prepared]
    seeds: Mapping[tuple[Place, int], bytes]

    def off(self, parcel: bytes, terms: Terms) -> Array:
        """A masked vector without the masks that these keys give, as whole numbers. A helper's is then in the clear."""
        header = read_header(parcel, _HELPER)
        vector = np.frombuffer(parcel, f"<u{terms.bits // 8}", offset=HEADER_SIZE).copy()
        apply_masks(vector, list(self._masks(header)))
        return np.asarray(vector.view(f"<i{terms.bits // 8}").astype(np.int64))

    def opens(self, sender: int, parcel: bytes) -> bool:
        """Whether these are the keys of this message's set-up."""
        return sender in self.setups and self.setups[sender].epoch == read_header(parcel, _HELPER).at.epoch

    def _masks(self, header: Header) -> Iterator[Mask]:
        """The known masks with the opposite sign, which subtracts them."""
        seed = self._seed(header)
        if seed:
            yield self_seed(seed, header.at, header.sender, header.salt), False
        for one, other, private, public in self._pairs(header):
            secret = shared_secret(private, public, _HELPER)
            yield pair_seed(secret, header.at, one, other), one > other  # the smaller place had added it

    def _seed(self, header: Header) -> bytes:
        own = self.setups.get(header.sender)
        if own is not None and own.epoch == header.at.epoch:
            return own.seeds[header.at.index]
        return self.seeds.get((header.at, header.sender), b"")

    def _pairs(self, header: Header) -> Iterator[tuple[int, int, bytes, bytes]]:
        """Sender, peer, and two halves of the key between them: all pairs of a helper, of others their pairs with helpers."""
        me, index = header.sender, header.at.index
        own = self.setups.get(me)
        if own is not None:
            yield from ((me, peer, own.mask_keys[index], keys[index]) for peer, keys in own.peers.items())
            return
        for place, setup in self.setups.items():
            if me in setup.peers and setup.epoch == header.at.epoch:
                yield me, place, setup.mask_keys[index], setup.peers[me][index]


def _mask_keys(secrets: Mapping[int, Mapping[str, bytes]], parcels: Sequence[bytes], parties: int) -> _MaskKeys:
    """All keys of the helpers (by place), and all seeds that the coordinator reconstructs from shares."""
    kept = {place: own[_SETUP] for place, own in secrets.items() if own.get(_SETUP)}
    return _MaskKeys({place: unpacked(stored[HASH:], Prepared) for place, stored in kept.items()}, _opened(parcels, parties))


def _opened(parcels: Sequence[bytes], parties: int) -> dict[tuple[Place, int], bytes]:
    """Self-mask seeds from the parties' shares. If a party dropped out, some of the secrets are not seeds."""
    shares: dict[tuple[Place, int], dict[int, int]] = {}
    for parcel in parcels:
        for at, dealer, holder, share in _shares(parcel, parties):
            shares.setdefault((at, dealer), {})[holder + 1] = share
    found = {which: shamir.combine(tuple(held), tuple(held.values())) for which, held in shares.items()}
    return {which: secret.to_bytes(KEY, "big") for which, secret in found.items() if secret < 1 << (8 * KEY)}


def _shares(parcel: bytes, parties: int) -> Iterator[tuple[Place, int, int, int]]:
    """Round, dealer, holder and share, of a message that opens a sum in which all parties are neighbours."""
    if len(parcel) < 2 or parcel[1] != Kind.UNMASKED:
        return
    reader = Reader(parcel[:-SIGNATURE], _HELPER, Kind.UNMASKED)
    holder, at = reader.number(2), read_place(reader)
    for dealer in range(parties):
        yield at, dealer, holder, read_share(reader)


def _told(parcels: Sequence[bytes], parties: int) -> Iterator[tuple[tuple[Place, int], tuple[bytes, ...]]]:
    """What each party reveals of its noise behind its shares, by round and place."""
    for parcel in parcels:
        if len(parcel) < 2 or parcel[1] != Kind.UNMASKED:
            continue
        reader = Reader(parcel[:-SIGNATURE], _HELPER, Kind.UNMASKED)
        holder, at = reader.number(2), read_place(reader)
        for _ in range(parties):
            read_share(reader)
        rest = bytes(reader.rest())
        yield (at, holder), tuple(rest[start : start + PART] for start in range(0, len(rest), PART))
