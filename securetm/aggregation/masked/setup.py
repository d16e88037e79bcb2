"""One set-up of a masked sum, both halves: four messages from each party prepare many rounds. It masks nothing yet.

A party commits to a number and shows public keys, reveals the number and tells a secret to each party behind it in the roster,
deals shares to its neighbours, and stores those it receives. What two of them know alone, seals and masks between them. A party
that drops out before dealing takes no part. One that drops out later is recovered like a party that misses a round. The
coordinator passes on what parties signed and sealed, and cannot open it: it keeps public keys, commitments, and hashes of
shares by which a false share can later be told from a true one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.graph import Geometry, geometry, holds, masking, neighbourhoods
from securetm.aggregation.masked.memory import Policy, Prepared, PublicSetup
from securetm.aggregation.masked.messages import (
    COMMIT_SIZE,
    REVEAL_SIZE,
    SHORT,
    TOLD,
    Kind,
    Reveal,
    bundle_hashes,
    bundle_size,
    checked,
    joined,
    keys_in,
    longest_in_set_up,
    read_reveal,
    secret_commitment,
    secrets_digest,
    short_hash,
)
from securetm.aggregation.masked.pairs import Copies, round_secrets, secret_hashes
from securetm.aggregation.masked.refusals import BrokenCommitment, ChangedMessage, SecretsDisagree, SharesDisagree, WrongSetup
from securetm.contracts import Entropy, Message, Parcel, Store
from securetm.data_classes import dataclass
from securetm.errors import CohortTooSmall, Malformed
from securetm.sessions.exchanges import CoordinatorExchange, PartyExchange
from securetm.sessions.framing import HASH, Label, Reader, hashed, head, listed, place_bytes, places_bytes
from securetm.sessions.hybrid import CIPHERTEXT, SECRET_KEYS, check_public_keys, public_keys, receive_secret, send_secret
from securetm.sessions.identities import COORDINATOR, KEY, SIGNATURE, Identity, PinnedRoster
from securetm.sessions.sealing import Pair
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


def draw(register: PinnedRoster, policy: Policy, rounds: int, commits: bytes, signed: Mapping[int, bytes]) -> SetupGraph:
    """The graph from all revealed numbers; the set-up's name from all that was signed. `commits` is the hash of commits."""
    reveals = {p: read_reveal(Reader(m[:-SIGNATURE], register.name(p), Kind.REVEAL), rounds) for p, m in signed.items()}
    setup = hashed(
        Label.SETUP, register.hash, policy.digest(rounds), commits, *(message[:-SIGNATURE] for message in signed.values())
    )
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
    """Run by a party. Afterwards it knows its own seeds, its secrets with its partners, and a share of each neighbour's."""

    def __init__(
        self, identity: Identity, policy: Policy, rounds: int, entropy: Entropy, done: Callable[[Prepared], None]
    ) -> None:
        self._identity, self._policy, self._rounds, self._entropy, self._done = identity, policy, rounds, entropy, done
        self._register, self._me = identity.register, identity.place
        self._nonce, self._keys = entropy.bytes(HASH), entropy.bytes(SECRET_KEYS)
        self._mask_secrets = tuple(entropy.bytes(KEY) for _ in range(rounds))
        self._seeds = tuple(entropy.bytes(KEY) for _ in range(rounds))
        commitment = nonce_commitment(self._register, self._me, self._nonce) + public_keys(self._keys)
        self._committed = identity.sign(Label.COMMITMENT, head(Kind.COMMIT, self._me) + commitment)
        super().__init__(self._committed)
        self.answers = {Kind.COMMITS: self._reveal}

    # ---- reveal ------------------------------------------------------------------------------------------------------

    def _reveal(self, message: bytes) -> bytes:
        commits = read_commits(message, self._register, COORDINATOR)
        if commits.get(self._me) != self._committed:
            raise ChangedMessage("commitment")
        self._enough(len(commits))
        hidden = [secret_commitment(self._register, self._me, n, secret) for n, secret in enumerate(self._secrets())]
        shown = Reveal(self._me, self._nonce, self._rounds, secrets_digest(hidden))
        self._commits, self._context = commits, hashed(Label.COMMITS, message)
        told = {place: self._tell(place) for place in commits if place > self._me}
        self._pairs = {place: pair for place, (pair, _) in told.items()}
        self._revealed = self._identity.sign(Label.REVEAL, shown.body(), self._context)
        self.answers = {Kind.REVEALS: self._deal}
        return b"".join((self._revealed, *hidden, *(message for _, message in told.values())))

    def _tell(self, place: int) -> tuple[Pair, bytes]:
        """This party and one behind it in the roster, and the message that tells that one their secret."""
        own, theirs = (keys_in(self._commits[p]) for p in (self._me, place))
        secrets, ciphertext = send_secret(self._keys, theirs, self._register.name(place))
        pair = Pair.of(self._register, self._context, ((self._me, own), (place, theirs)), secrets, ciphertext)
        return pair, ciphertext + pair.seal(Label.TOLD, self._me, place, b"")

    def _hear(self, place: int, message: bytes) -> Pair:
        """This party and one before it. Nobody else told the secret: else shares could be sealed for whoever carries them."""
        ciphertext, proof = message[:CIPHERTEXT], message[CIPHERTEXT:]
        own, theirs = (keys_in(self._commits[p]) for p in (self._me, place))
        secrets = receive_secret(self._keys, theirs, ciphertext, self._register.name(place))
        pair = Pair.of(self._register, self._context, ((place, theirs), (self._me, own)), secrets, ciphertext)
        pair.unseal(Label.TOLD, place, self._me, proof)
        return pair

    def _secrets(self) -> list[bytes]:
        """What it deals: for each round the mask secret and the seed."""
        return [secret for pair in zip(self._mask_secrets, self._seeds, strict=True) for secret in pair]

    def _enough(self, found: int) -> None:
        if found < self._policy.risk.threshold:
            raise CohortTooSmall(found, self._policy.risk.threshold)

    # ---- deal --------------------------------------------------------------------------------------------------------

    def _deal(self, message: bytes) -> bytes:
        reveals, told = self._checked_reveals(message)
        drawn = draw(self._register, self._policy, self._rounds, self._context, reveals)
        if not holds(drawn.geometry, self._policy.risk):
            raise CohortTooSmall(len(drawn.reveals), len(self._register))
        holders = drawn.holders(self._me)
        self._pairs |= {place: self._hear(place, told[place]) for place in drawn.neighbours[self._me] if place < self._me}
        self._pairs = {place: self._pairs[place].within(drawn.setup) for place in drawn.neighbours[self._me]}
        dealt = shamir.deal(self._secrets(), [place + 1 for place in holders], drawn.geometry.threshold, self._entropy)
        bundles = {holder: joined(shares) for holder, shares in zip(holders, dealt, strict=True)}
        parts = [head(Kind.SHARES, self._me), drawn.setup]
        for holder, bundle in bundles.items():
            parts.append(bundle_hashes(drawn.setup, self._me, holder, bundle))
            if holder != self._me:
                parts.append(self._pairs[holder].seal(Label.SHARE_SEAL, self._me, holder, bundle))
        self._peers = {place: round_secrets(self._pairs[place], self._rounds) for place in drawn.partners[self._me]}
        copies = Copies(drawn.setup, self._me, dict(enumerate(self._mask_secrets)), len(self._register))
        for place, secrets in self._peers.items():
            parts += [secret_hashes(drawn.setup, self._me, place, secrets), copies.turned(place, secrets)]
        self._drawn, self._own, self.answers = drawn, bundles[self._me], {Kind.DELIVERY: self._store}
        return self._identity.sign(Label.SHARES, b"".join(parts))

    def _checked_reveals(self, message: bytes) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """All reveals, and what those before it in the roster tell this party."""
        reader = Reader(message, COORDINATOR, Kind.REVEALS)
        found = reader.messages(len(self._register), REVEAL_SIZE, Kind.REVEAL)
        told = reader.entries([place for place in found if place < self._me], TOLD)
        reader.end()
        for place, signed in found.items():
            check_reveal(place, signed, self._commits, self._register, self._context)
        if found.get(self._me) != self._revealed:
            raise ChangedMessage("reveal")
        self._enough(len(found))
        return found, told

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
        peers = {place: secrets for place, secrets in self._peers.items() if place in places}
        self._done(Prepared(epoch, places, self._seeds, peers, bundles))
        self.answers = {}
        hashes = [short_hash(bundle_hashes(drawn.setup, dealer, self._me, bundles[dealer])) for dealer in sorted(bundles)]
        return self._identity.sign(Label.RECEIPT, head(Kind.STORED, self._me) + epoch + b"".join(hashes))

    def _opened(self, dealer: int, sealed: bytes) -> bytes:
        bundle = self._pairs[dealer].unseal(Label.SHARE_SEAL, dealer, self._me, sealed)
        return checked(bundle, self._register.name(dealer))


@dataclass(frozen=True)
class Dealt:
    """What a party dealt, as the coordinator sees it."""

    hashes: dict[int, bytes]  # of shares, by holder
    sealed: dict[int, bytes]  # shares, by holder
    pairs: dict[int, tuple[bytes, bytes]]  # hashes and copies of secrets, by partner


_HASHES, _PAIRS = "masked share hashes {}", "masked pairs {}"


def hashes_of(store: Store, setup: bytes, dealer: int) -> dict[int, bytes]:
    """What a dealer said of its shares: for each holder their hashes end to end."""
    kept = SessionMemory(store, setup).load(_HASHES.format(dealer), dict[int, bytes])
    if kept is None:
        raise WrongSetup()
    return kept


def pairs_of(store: Store, setup: bytes, dealer: int) -> dict[int, tuple[bytes, bytes]]:
    """What a dealer said of its masks: for each partner the hashes of their secrets, and its encrypted copies of these."""
    kept = SessionMemory(store, setup).load(_PAIRS.format(dealer), dict[int, tuple[bytes, bytes]])
    if kept is None:
        raise WrongSetup()
    return kept


Revealed = tuple[bytes, tuple[bytes, ...], dict[int, bytes]]  # signed; commitments to secrets; ciphertexts by recipient


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
        Reader(message, sender, Kind.COMMIT).speaks_for(place)
        if len(message) != COMMIT_SIZE:
            raise Malformed(sender, "it is no commitment")
        commit = bytes(message)
        self._register.opened(place, sender, commit, Label.COMMITMENT)
        check_public_keys(keys_in(commit), sender)
        return commit

    def _send_commits(self, came: Mapping[int, bytes]) -> Sequence[Parcel]:
        self._commits = came
        message = head(Kind.COMMITS) + listed(came.values())
        self._context = hashed(Label.COMMITS, message)
        self.ask(came, self._take_reveal, self._send_reveals, self._fewest)
        return self.to(dict.fromkeys(came, message))

    def _take_reveal(self, place: int, sender: str, message: Message) -> Revealed:
        behind = [other for other in self._commits if other > place]
        if len(message) != REVEAL_SIZE + 2 * HASH * self._rounds + TOLD * len(behind):
            raise Malformed(sender, "it is no reveal, or prepares another number of rounds")
        reader = Reader(message, sender, Kind.REVEAL)
        reader.speaks_for(place)
        signed = bytes(message[:REVEAL_SIZE])
        reader.take(REVEAL_SIZE - 4)
        hidden = tuple(reader.take(HASH) for _ in range(2 * self._rounds))
        told = reader.entries(behind, TOLD)
        check_reveal(place, signed, self._commits, self._register, self._context)
        shown = read_reveal(Reader(signed[:-SIGNATURE], sender, Kind.REVEAL), self._rounds)
        if shown.secrets_hash != secrets_digest(hidden):
            raise BrokenCommitment(sender)
        return signed, hidden, told

    def _send_reveals(self, came: Mapping[int, Revealed]) -> Sequence[Parcel]:
        signed = {place: one for place, (one, _, _) in came.items()}
        self._hidden = {place: hidden for place, (_, hidden, _) in came.items()}
        self._drawn = draw(self._register, self._policy, self._rounds, self._context, signed)
        message = head(Kind.REVEALS) + listed(signed.values())
        self.ask(signed, self._take_shares, self._send_shares, self._fewest)
        told = {place: [came[other][2][place] for other in came if other < place] for place in came}
        return self.to({place: b"".join((message, *told[place])) for place in came})

    # ---- shares ------------------------------------------------------------------------------------------------------

    def _take_shares(self, place: int, sender: str, message: Message) -> Dealt:
        longest, _ = longest_in_set_up(len(self._register), self._rounds)
        reader = self.signed(place, sender, message, Label.SHARES, Kind.SHARES, longest)
        if reader.take(HASH) != self._drawn.setup:
            raise WrongSetup()
        hashes, sealed = dict[int, bytes](), dict[int, bytes]()
        for holder in self._drawn.holders(place):
            hashes[holder] = reader.take(2 * self._rounds * SHORT)
            if holder != place:
                sealed[holder] = reader.take(bundle_size(self._rounds))
        partners = self._drawn.partners[place]
        pairs = {p: (reader.take(self._rounds * SHORT), reader.take(self._rounds * KEY)) for p in partners}
        reader.end()
        return Dealt(hashes, sealed, pairs)

    def _send_shares(self, dealt: Mapping[int, Dealt]) -> Sequence[Parcel]:
        places, memory = tuple(dealt), SessionMemory(self._store, self._drawn.setup)
        self._check_pairs(dealt)
        for place, one in dealt.items():
            memory.save(_HASHES.format(place), one.hashes)
            memory.save(_PAIRS.format(place), one.pairs)
        self._agreed = {p: tuple(short_hash(dealt[d].hashes[p]) for d in self._dealers(p, places)) for p in places}
        self.ask(places, self._take_stored, need=self._fewest)
        self._adopt(places)
        first = head(Kind.DELIVERY) + self._drawn.setup + places_bytes(places)
        others = {p: [d for d in self._dealers(p, places) if d != p] for p in places}
        return self.to({p: first + b"".join(dealt[d].sealed[p] for d in others[p]) for p in places})

    def _check_pairs(self, dealt: Mapping[int, Dealt]) -> None:
        """Refuses a set-up in which the masks of two parties would not cancel."""
        for one in dealt:
            for other in self._drawn.partners[one]:
                if other in dealt and dealt[one].pairs[other][0] != dealt[other].pairs[one][0]:
                    raise SecretsDisagree(self._register.name(one), self._register.name(other))

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

    def _adopt(self, places: tuple[int, ...]) -> None:
        """Parties that dealt shares take part even if their receipt is missing: they count as absent until they come.

        So a carrier of few passes may ask them the first question along with the delivery of the shares.
        """
        drawn = self._drawn
        hidden = {place: self._hidden[place] for place in places}
        neighbours, partners = (
            {place: tuple(peer for peer in ring[place] if peer in hidden) for place in places}
            for ring in (drawn.neighbours, drawn.partners)
        )
        epoch, threshold = epoch_of(drawn.setup, places), drawn.geometry.threshold
        self._done(PublicSetup(epoch, drawn.setup, threshold, self._rounds, neighbours, partners, hidden))
