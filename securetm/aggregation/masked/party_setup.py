"""One set-up of a masked sum, both halves: four messages from each party prepare many rounds. It masks nothing yet.

A party commits to a number, reveals it with public keys, deals shares to its neighbours, and stores those it receives. A party
that drops out before dealing takes no part. One that drops out later is recovered like a party that misses a round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.graph import Geometry, geometry, holds, masking, neighbourhoods
from securetm.aggregation.masked.masked_errors import BrokenCommitment, ChangedMessage, WrongSetup
from securetm.aggregation.masked.messages import COMMIT_SIZE, Kind, Reveal, bundle_size, read_reveal, reveal_size
from securetm.aggregation.masked.shares import bundle_hashes, checked, joined, seed_commitment, seeds_digest, short_hash
from securetm.aggregation.masked.stored_setups import Policy, Prepared
from securetm.contracts import Entropy
from securetm.errors import CohortTooSmall
from securetm.sessions.exchanges import PartyExchange
from securetm.sessions.framing import HASH, Reader, hashed, head, place_bytes, places_bytes
from securetm.sessions.identities import COORDINATOR, KEY, SIGNATURE, Identity, PinnedRoster
from securetm.sessions.labels import Label
from securetm.sessions.sealing import Sealing, public_key


@dataclass(frozen=True)
class SetupGraph:
    """The graph and the name of a set-up. Every role computes them from all reveals."""

    setup: bytes
    reveals: Mapping[int, Reveal]
    geometry: Geometry
    neighbours: Mapping[int, tuple[int, ...]]  # who holds shares of whose secrets
    partners: Mapping[int, tuple[int, ...]]  # who masks with whom: neighbours all of them

    def holders(self, dealer: int) -> tuple[int, ...]:
        """Who holds shares of a dealer's secrets: its neighbours and itself."""
        return tuple(sorted((*self.neighbours[dealer], dealer)))


def draw(register: PinnedRoster, policy: Policy, rounds: int, signed: Mapping[int, bytes]) -> SetupGraph:
    """The graph from all revealed numbers; the set-up's name from all that was signed."""
    reveals = {p: read_reveal(Reader(m[:-SIGNATURE], register.name(p), Kind.REVEAL), rounds) for p, m in signed.items()}
    setup = hashed(Label.SETUP, register.hash, policy.digest(rounds), *(message[:-SIGNATURE] for message in signed.values()))
    seed = hashed(Label.GRAPH, register.hash, places_bytes(tuple(signed)), *(reveal.nonce for reveal in reveals.values()))
    drawn = geometry(len(signed), policy.risk)
    rings = (neighbourhoods(tuple(reveals), degree, seed) for degree in (drawn.degree, masking(drawn, policy.risk)))
    return SetupGraph(setup, reveals, drawn, *rings)


def epoch_of(setup: bytes, places: Sequence[int]) -> bytes:
    """The set-up together with who takes part in its rounds."""
    return hashed(Label.EPOCH, setup, places_bytes(places))


def nonce_commitment(register: PinnedRoster, place: int, nonce: bytes) -> bytes:
    """Binds a party to its number before it has seen any other."""
    return hashed(Label.NONCE, register.hash, place_bytes(place), nonce)


def read_commits(message: bytes, register: PinnedRoster, sender: str) -> dict[int, bytes]:
    """The signed commitments of all parties, each checked against its pinned key."""
    reader = Reader(message, sender, Kind.COMMITS)
    found = reader.messages(len(register), COMMIT_SIZE, Kind.COMMIT)
    reader.end()
    for place, commit in found.items():
        register.opened(place, sender, commit, Label.COMMITMENT)
    return found


def check_reveal(place: int, signed: bytes, commits: Mapping[int, bytes], register: PinnedRoster, context: bytes) -> None:
    """A reveal counts if its party signed it after seeing the same commitments, and if it opens its own."""
    register.opened(place, register.name(place), signed, Label.REVEAL, context)
    if place not in commits or commits[place][4 : 4 + HASH] != nonce_commitment(register, place, signed[4 : 4 + HASH]):
        raise BrokenCommitment(register.name(place))


class MaskedPartySetup(PartyExchange):
    """Run by a party. Afterwards it knows its own secrets, everybody's public keys, and one share of each neighbour's."""

    def __init__(
        self, identity: Identity, policy: Policy, rounds: int, entropy: Entropy, done: Callable[[Prepared], None]
    ) -> None:
        self._identity, self._policy, self._rounds, self._entropy, self._done = identity, policy, rounds, entropy, done
        self._register, self._me = identity.register, identity.place
        self._nonce, self._sealing_key = entropy.bytes(HASH), entropy.bytes(KEY)
        self._mask_keys = tuple(entropy.bytes(KEY) for _ in range(rounds))
        self._seeds = tuple(entropy.bytes(KEY) for _ in range(rounds))
        commitment = nonce_commitment(self._register, self._me, self._nonce)
        self._committed = identity.sign(Label.COMMITMENT, head(Kind.COMMIT, self._me) + commitment)
        super().__init__(self._committed)
        self.answers = {Kind.COMMITS: self._reveal}

    # ---- reveal ------------------------------------------------------------------------------------------------------

    def _reveal(self, message: bytes) -> bytes:
        commits = read_commits(message, self._register, COORDINATOR)
        if commits.get(self._me) != self._committed:
            raise ChangedMessage("commitment")
        self._enough(len(commits))
        indices = range(self._rounds)
        hidden = [seed_commitment(self._register, self._me, index, self._seeds[index]) for index in indices]
        keys = tuple(public_key(key) for key in self._mask_keys)
        shown = Reveal(self._me, self._nonce, public_key(self._sealing_key), keys, seeds_digest(hidden))
        self._commits, self._context = commits, hashed(Label.COMMITS, message)
        self._revealed = self._identity.sign(Label.REVEAL, shown.body(), self._context)
        self.answers = {Kind.REVEALS: self._deal}
        return self._revealed + b"".join(hidden)

    def _enough(self, found: int) -> None:
        if found < self._policy.risk.threshold:
            raise CohortTooSmall(found, self._policy.risk.threshold)

    # ---- deal --------------------------------------------------------------------------------------------------------

    def _deal(self, message: bytes) -> bytes:
        drawn = draw(self._register, self._policy, self._rounds, self._checked_reveals(message))
        if not holds(drawn.geometry, self._policy.risk):
            raise CohortTooSmall(len(drawn.reveals), len(self._register))
        holders = drawn.holders(self._me)
        secrets = [secret for pair in zip(self._mask_keys, self._seeds, strict=True) for secret in pair]
        dealt = shamir.deal(secrets, [place + 1 for place in holders], drawn.geometry.threshold, self._entropy)
        bundles = {holder: joined(shares) for holder, shares in zip(holders, dealt, strict=True)}
        parts = [head(Kind.SHARES, self._me), drawn.setup]
        for holder, bundle in bundles.items():
            parts.append(bundle_hashes(drawn.setup, self._me, holder, bundle))
            if holder != self._me:
                parts.append(self._sealing(drawn, self._me, holder).seal(self._sealing_key, bundle))
        self._drawn, self._own, self.answers = drawn, bundles[self._me], {Kind.DELIVERY: self._store}
        return self._identity.sign(Label.SHARES, b"".join(parts))

    def _checked_reveals(self, message: bytes) -> dict[int, bytes]:
        reader = Reader(message, COORDINATOR, Kind.REVEALS)
        found = reader.messages(len(self._register), reveal_size(self._rounds), Kind.REVEAL)
        reader.end()
        for place, signed in found.items():
            check_reveal(place, signed, self._commits, self._register, self._context)
        if found.get(self._me) != self._revealed:
            raise ChangedMessage("reveal")
        self._enough(len(found))
        return found

    def _sealing(self, drawn: SetupGraph, dealer: int, holder: int) -> Sealing:
        ends = ((place, drawn.reveals[place].sealing_key) for place in (dealer, holder))
        return Sealing(self._register, Label.SHARE_SEAL, drawn.setup, *ends)

    # ---- store -------------------------------------------------------------------------------------------------------

    def _store(self, message: bytes) -> bytes:
        reader, drawn = Reader(message, COORDINATOR, Kind.DELIVERY), self._drawn
        if reader.take(HASH) != drawn.setup:
            raise WrongSetup()
        places = reader.places(len(self._register))
        self._enough(len(places))
        if self._me not in places or not set(places) <= set(drawn.reveals):
            raise ChangedMessage("list of dealers")
        neighbours = [place for place in drawn.neighbours[self._me] if place in places]
        sealed = reader.entries(neighbours, bundle_size(self._rounds))
        reader.end()
        bundles = {dealer: self._opened(dealer, bundle) for dealer, bundle in sealed.items()} | {self._me: self._own}
        epoch = epoch_of(drawn.setup, places)
        peers = {p: drawn.reveals[p].mask_keys for p in drawn.partners[self._me] if p in places}
        self._done(Prepared(epoch, places, self._mask_keys, self._seeds, peers, bundles))
        self.answers = {}
        hashes = [short_hash(bundle_hashes(drawn.setup, dealer, self._me, bundles[dealer])) for dealer in sorted(bundles)]
        return self._identity.sign(Label.RECEIPT, head(Kind.STORED, self._me) + epoch + b"".join(hashes))

    def _opened(self, dealer: int, sealed: bytes) -> bytes:
        bundle = self._sealing(self._drawn, dealer, self._me).unseal(self._sealing_key, sealed)
        return checked(bundle, self._register.name(dealer))
