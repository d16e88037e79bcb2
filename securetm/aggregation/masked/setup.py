"""One set-up of a masked sum, both halves: four messages from each party prepare many rounds. It masks nothing yet.

A party commits to a number, reveals it with public keys, deals shares to its neighbours, and stores those it receives. A party
that drops out before dealing takes no part. One that drops out later is recovered like a party that misses a round. The
coordinator passes on what parties signed and sealed, and cannot open it: it keeps public keys, commitments, and hashes of
shares by which a false share can later be told from a true one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.graph import Geometry, geometry, holds, masking, neighbourhoods
from securetm.aggregation.masked.memory import Policy, Prepared, PublicSetup
from securetm.aggregation.masked.messages import (
    COMMIT_SIZE,
    SHORT,
    Kind,
    Reveal,
    bundle_hashes,
    bundle_size,
    checked,
    joined,
    longest_in_set_up,
    read_reveal,
    reveal_size,
    seed_commitment,
    seeds_digest,
    short_hash,
)
from securetm.aggregation.masked.refusals import BrokenCommitment, ChangedMessage, SharesDisagree, WrongSetup
from securetm.contracts import Entropy, Message, Parcel, Store
from securetm.errors import CohortTooSmall, Malformed
from securetm.sessions.exchanges import CoordinatorExchange, PartyExchange
from securetm.sessions.framing import HASH, Label, Reader, hashed, head, listed, place_bytes, places_bytes
from securetm.sessions.hybrid import public_key
from securetm.sessions.identities import COORDINATOR, KEY, SIGNATURE, Identity, PinnedRoster
from securetm.sessions.sealing import Sealing
from securetm.sessions.session_memory import SessionMemory


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


DealtShares = tuple[dict[int, bytes], dict[int, bytes]]  # hashes of shares, and sealed shares, by holder
_HASHES = "masked share hashes {}"


def hashes_of(store: Store, setup: bytes, dealer: int) -> dict[int, bytes]:
    """What a dealer said of its shares: for each holder their hashes end to end."""
    kept = SessionMemory(store, setup).load(_HASHES.format(dealer), dict[int, bytes])
    if kept is None:
        raise WrongSetup()
    return kept


class MaskedCoordinatorSetup(CoordinatorExchange):
    """Run by the coordinator, which then knows who takes part and every public key."""

    def __init__(
        self, register: PinnedRoster, policy: Policy, rounds: int, store: Store, done: Callable[[PublicSetup], None]
    ) -> None:
        super().__init__(register)
        self._policy, self._rounds, self._store, self._done = policy, rounds, store, done
        self._fewest = policy.risk.threshold  # in each wave
        self.ask(range(len(register)), self._take_commit, self._send_commits, self._fewest)

    # ---- commitments and reveals --------------------------------------------------------------------------------------

    def _take_commit(self, place: int, sender: str, message: Message) -> bytes:
        if len(message) != COMMIT_SIZE or message[:4] != head(Kind.COMMIT, place):
            raise Malformed(sender, "it is no commitment")
        commit = bytes(message)
        self._register.opened(place, sender, commit, Label.COMMITMENT)
        return commit

    def _send_commits(self, came: Mapping[int, bytes]) -> Sequence[Parcel]:
        self._commits = came
        message = head(Kind.COMMITS) + listed(came.values())
        self._context = hashed(Label.COMMITS, message)
        self.ask(came, self._take_reveal, self._send_reveals, self._fewest)
        return self.to(dict.fromkeys(came, message))

    def _take_reveal(self, place: int, sender: str, message: Message) -> tuple[bytes, tuple[bytes, ...]]:
        size = reveal_size(self._rounds)
        if len(message) != size + HASH * self._rounds or message[:4] != head(Kind.REVEAL, place):
            raise Malformed(sender, "it is no reveal, or prepares another number of rounds")
        signed, hidden = bytes(message[:size]), tuple(bytes(message[at : at + KEY]) for at in range(size, len(message), KEY))
        check_reveal(place, signed, self._commits, self._register, self._context)
        shown = read_reveal(Reader(signed[:-SIGNATURE], sender, Kind.REVEAL), self._rounds)
        if shown.seeds_hash != seeds_digest(hidden):
            raise BrokenCommitment(sender)
        return signed, hidden

    def _send_reveals(self, came: Mapping[int, tuple[bytes, tuple[bytes, ...]]]) -> Sequence[Parcel]:
        signed = {place: one for place, (one, _) in came.items()}
        self._hidden = {place: hidden for place, (_, hidden) in came.items()}
        self._drawn = draw(self._register, self._policy, self._rounds, signed)
        message = head(Kind.REVEALS) + listed(signed.values())
        self.ask(signed, self._take_shares, self._send_shares, self._fewest)
        return self.to(dict.fromkeys(signed, message))

    # ---- shares ------------------------------------------------------------------------------------------------------

    def _take_shares(self, place: int, sender: str, message: Message) -> DealtShares:
        longest, _ = longest_in_set_up(len(self._register), self._rounds)
        reader = self.signed(place, sender, message, Label.SHARES, Kind.SHARES, longest)
        if reader.take(HASH) != self._drawn.setup:
            raise WrongSetup()
        hashes, sealed = dict[int, bytes](), dict[int, bytes]()
        for holder in self._drawn.holders(place):
            hashes[holder] = reader.take(2 * self._rounds * SHORT)
            if holder != place:
                sealed[holder] = reader.take(bundle_size(self._rounds))
        reader.end()
        return hashes, sealed

    def _send_shares(self, dealt: Mapping[int, DealtShares]) -> Sequence[Parcel]:
        places = tuple(dealt)
        for place, (hashes, _) in dealt.items():
            SessionMemory(self._store, self._drawn.setup).save(_HASHES.format(place), hashes)
        self._agreed = {p: tuple(short_hash(dealt[d][0][p]) for d in self._dealers(p, places)) for p in places}
        self.ask(places, self._take_stored, self._finish, self._fewest)
        first = head(Kind.DELIVERY) + self._drawn.setup + places_bytes(places)
        others = {p: [d for d in self._dealers(p, places) if d != p] for p in places}
        return self.to({p: first + b"".join(dealt[d][1][p] for d in others[p]) for p in places})

    def _dealers(self, holder: int, places: Sequence[int]) -> list[int]:
        return [dealer for dealer in self._drawn.holders(holder) if dealer in places]

    def _take_stored(self, place: int, sender: str, message: Message) -> None:
        longest, _ = longest_in_set_up(len(self._register), 1)
        reader = self.signed(place, sender, message, Label.RECEIPT, Kind.STORED, longest)
        if reader.take(HASH) != epoch_of(self._drawn.setup, tuple(self._agreed)):
            raise WrongSetup()
        dealers = self._dealers(place, tuple(self._agreed))
        for dealer, agreed in zip(dealers, self._agreed[place], strict=True):
            if reader.take(SHORT) != agreed:
                raise SharesDisagree(self._register.name(dealer), sender)
        reader.end()

    def _finish(self, came: Mapping[int, None]) -> Sequence[Parcel]:
        """Parties that dealt shares take part even if their receipt is missing: they count as absent until they come."""
        drawn, places = self._drawn, tuple(self._agreed)
        keys = {place: drawn.reveals[place].mask_keys for place in places}
        hidden = {place: self._hidden[place] for place in places}
        neighbours, partners = (
            {place: tuple(peer for peer in ring[place] if peer in keys) for place in places}
            for ring in (drawn.neighbours, drawn.partners)
        )
        epoch, threshold = epoch_of(drawn.setup, places), drawn.geometry.threshold
        self._done(PublicSetup(epoch, drawn.setup, threshold, self._rounds, neighbours, partners, keys, hidden))
        return ()
