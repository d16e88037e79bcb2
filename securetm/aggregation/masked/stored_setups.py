"""What each role of a masked sum keeps after a set-up, as it lies in its store. It decides nothing.

A party keeps its own secrets and the shares it holds for others; the coordinator keeps public keys and commitments only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from securetm.aggregation.masked.graph import Geometry, Risk, neighbourhoods
from securetm.aggregation.masked.messages import MOST_PARTIES, MOST_ROUNDS, bundle_size
from securetm.sessions.framing import HASH, Reader, hashed, head, places_bytes
from securetm.sessions.identities import KEY
from securetm.sessions.labels import Label
from securetm.sessions.sealing import TAG

STORED_KIND = 0
_HERE = "this role's own memory"


@dataclass(frozen=True)
class Policy:
    """What all roles of a session agreed on before it began: it follows from the profile and the roster."""

    risk: Risk
    consistency: bool

    def digest(self, rounds: int) -> bytes:
        """Bound into the set-up, so that two roles with other settings never share a mask."""
        risk = self.risk
        numbers = (risk.threshold, risk.colluding, risk.complete_up_to, risk.degree, int(self.consistency), rounds)
        return hashed(Label.POLICY, *(str(number).encode() for number in numbers), repr((risk.failure, risk.stall)).encode())


@dataclass(frozen=True)
class Prepared:
    """A party's set-up: for each round one mask key, one self-mask seed, and two shares from each neighbour."""

    epoch: bytes
    places: tuple[int, ...]  # who takes part in this set-up
    mask_keys: tuple[bytes, ...]  # secret, one a round
    seeds: tuple[bytes, ...]  # secret, one a round
    peers: Mapping[int, tuple[bytes, ...]]  # neighbours' public mask keys, one a round
    bundles: Mapping[int, bytes]  # the shares this party holds, by dealer; one dealer is itself

    @property
    def rounds(self) -> int:
        """Prekeys in all."""
        return len(self.seeds)

    def pack(self) -> bytes:
        """As it lies in the store."""
        parts = [head(STORED_KIND), self.epoch, places_bytes(self.places), self.rounds.to_bytes(2, "big")]
        parts += [*self.mask_keys, *self.seeds, places_bytes(sorted(self.peers)), places_bytes(sorted(self.bundles))]
        parts += [key for place in sorted(self.peers) for key in self.peers[place]]
        return b"".join(parts + [self.bundles[dealer] for dealer in sorted(self.bundles)])


def read_prepared(stored: bytes) -> Prepared:
    """A party's set-up as it lay in the store."""
    reader = Reader(stored, _HERE)
    epoch, places = reader.take(HASH), reader.places(MOST_PARTIES)
    rounds = reader.count(MOST_ROUNDS)
    keys, seeds = _keys(reader, rounds), _keys(reader, rounds)
    neighbours, dealers = reader.places(MOST_PARTIES), reader.places(MOST_PARTIES)
    peers = {place: _keys(reader, rounds) for place in neighbours}
    bundles = {dealer: reader.take(bundle_size(rounds) - TAG) for dealer in dealers}
    reader.end()
    return Prepared(epoch, places, keys, seeds, peers, bundles)


def _keys(reader: Reader, rounds: int) -> tuple[bytes, ...]:
    return tuple(reader.take(KEY) for _ in range(rounds))


@dataclass(frozen=True)
class PublicSetup:
    """The coordinator's set-up: nothing in it is secret."""

    epoch: bytes
    setup: bytes
    drawn: tuple[int, ...]  # the places on the ring
    geometry: Geometry
    graph_seed: bytes
    rounds: int
    mask_keys: Mapping[int, tuple[bytes, ...]]  # by place, of those who take part
    commitments: Mapping[int, tuple[bytes, ...]]  # to their self-mask seeds

    @property
    def places(self) -> tuple[int, ...]:
        """Who takes part in this set-up."""
        return tuple(sorted(self.mask_keys))

    def neighbours(self) -> dict[int, tuple[int, ...]]:
        """Who masks with whom, of those who take part."""
        ring = neighbourhoods(self.drawn, self.geometry.degree, self.graph_seed)
        return {place: tuple(peer for peer in ring[place] if peer in self.mask_keys) for place in self.mask_keys}

    def pack(self) -> bytes:
        """As it lies in the store."""
        numbers = (self.geometry.degree, self.geometry.threshold, self.rounds)
        parts = [head(STORED_KIND), self.epoch, self.setup, places_bytes(self.drawn), self.graph_seed]
        parts += [*(number.to_bytes(2, "big") for number in numbers), places_bytes(self.places)]
        return b"".join(parts + [k for p in self.places for k in (*self.mask_keys[p], *self.commitments[p])])


def read_public_setup(stored: bytes) -> PublicSetup:
    """The coordinator's set-up as it lay in the store."""
    reader = Reader(stored, _HERE)
    epoch, setup, drawn, seed = reader.take(HASH), reader.take(HASH), reader.places(MOST_PARTIES), reader.take(HASH)
    degree, threshold, rounds = reader.number(2), reader.number(2), reader.count(MOST_ROUNDS)
    both = {place: _keys(reader, 2 * rounds) for place in reader.places(MOST_PARTIES)}
    reader.end()
    keys, commitments = ({p: found[at : at + rounds] for p, found in both.items()} for at in (0, rounds))
    return PublicSetup(epoch, setup, drawn, Geometry(len(drawn), degree, threshold), seed, rounds, keys, commitments)
