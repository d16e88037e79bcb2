"""What somebody with the mask keys of some parties takes off masked vectors: their own whole, of others' the masks in common.

It breaks no cipher. What is left under a mask whose keys nobody gave away is read as the numbers that it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.messages import HASH, HEADER_SIZE, Header, Kind, Place, Reader, read_header, read_place
from securetm.aggregation.masked.party_round import pair_seed, self_seed
from securetm.aggregation.masked.shares import shared_secret
from securetm.aggregation.masked.stored_setups import Prepared, read_prepared
from securetm.contracts import Array, Terms
from securetm.sessions.identities import KEY, SIGNATURE

_SETUP = "masked setup"  # under this name a party keeps its prekeys (aggregation/masked/prekeys.py)
_NOBODY = "a party that helps"


@dataclass(frozen=True)
class MaskKeys:
    """The prekeys of the parties that help, by place in the roster, and self-mask seeds that the round itself opened."""

    setups: Mapping[int, Prepared]
    seeds: Mapping[tuple[Place, int], bytes]

    def off(self, parcel: bytes, terms: Terms) -> Array:
        """A masked vector less every mask that these keys give: whole numbers, all of them the party's own if it helps."""
        header = read_header(parcel, _NOBODY)
        vector = np.frombuffer(parcel, f"<u{terms.bits // 8}", offset=HEADER_SIZE).copy()
        apply_masks(vector, list(self._masks(header)))
        return np.asarray(vector.view(f"<i{terms.bits // 8}").astype(np.int64))

    def opens(self, sender: int, parcel: bytes) -> bool:
        """Whether the keys that are there are those of this message's set-up."""
        return sender in self.setups and self.setups[sender].epoch == read_header(parcel, _NOBODY).at.epoch

    def _masks(self, header: Header) -> Iterator[Mask]:
        """With the sign turned round: what was added is taken off."""
        seed = self._seed(header)
        if seed:
            yield self_seed(seed, header.at, header.sender, header.salt), False
        for one, other, private, public in self._pairs(header):
            secret = shared_secret(private, public, _NOBODY)
            yield pair_seed(secret, header.at, one, other), one > other  # the smaller place had added it

    def _seed(self, header: Header) -> bytes:
        own = self.setups.get(header.sender)
        if own is not None and own.epoch == header.at.epoch:
            return own.seeds[header.at.index]
        return self.seeds.get((header.at, header.sender), b"")

    def _pairs(self, header: Header) -> Iterator[tuple[int, int, bytes, bytes]]:
        """Sender, its peer, and two halves of the key between them: of a helper all, of another those that helpers have."""
        me, index = header.sender, header.at.index
        own = self.setups.get(me)
        if own is not None:
            yield from ((me, peer, own.mask_keys[index], keys[index]) for peer, keys in own.peers.items())
            return
        for place, setup in self.setups.items():
            if me in setup.peers and setup.epoch == header.at.epoch:
                yield me, place, setup.mask_keys[index], setup.peers[me][index]


def mask_keys(secrets: Mapping[int, Mapping[str, bytes]], parcels: Sequence[bytes], parties: int) -> MaskKeys:
    """All that helpers (by place) keep, and that the coordinator puts together from the shares sent to open sums."""
    kept = {place: own[_SETUP] for place, own in secrets.items() if own.get(_SETUP)}
    return MaskKeys({place: read_prepared(stored[HASH:]) for place, stored in kept.items()}, _opened(parcels, parties))


def _opened(parcels: Sequence[bytes], parties: int) -> dict[tuple[Place, int], bytes]:
    """Self-mask seeds from the shares that parties send for each other; where somebody dropped out they are not all seeds."""
    shares: dict[tuple[Place, int], dict[int, int]] = {}
    for parcel in parcels:
        for at, dealer, holder, share in _shares(parcel, parties):
            shares.setdefault((at, dealer), {})[holder + 1] = share
    found = {which: shamir.combine(tuple(held), tuple(held.values())) for which, held in shares.items()}
    return {which: secret.to_bytes(KEY, "big") for which, secret in found.items() if secret < 1 << (8 * KEY)}


def _shares(parcel: bytes, parties: int) -> Iterator[tuple[Place, int, int, int]]:
    """Of one message that opens a sum: round, dealer, holder and share, as long as everybody is everybody's neighbour."""
    if len(parcel) < 2 or parcel[1] != Kind.UNMASKED:
        return
    reader = Reader(parcel[:-SIGNATURE], _NOBODY, Kind.UNMASKED)
    holder, at = reader.number(2), read_place(reader)
    for dealer in range(parties):
        yield at, dealer, holder, reader.share()
