"""The coordinator's half of a set-up: it passes on what parties signed and sealed. It cannot open what it carries.

It keeps public keys, commitments, and hashes of shares by which a false share can later be told from a true one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from securetm.aggregation.masked.masked_errors import BrokenCommitment, SharesDisagree, WrongSetup
from securetm.aggregation.masked.messages import (
    COMMIT_SIZE,
    SHORT,
    Kind,
    bundle_size,
    longest_in_set_up,
    read_reveal,
    reveal_size,
)
from securetm.aggregation.masked.party_setup import check_reveal, draw, epoch_of
from securetm.aggregation.masked.shares import seeds_digest, short_hash
from securetm.aggregation.masked.stored_setups import Policy, PublicSetup
from securetm.contracts import Message, Parcel, Store
from securetm.errors import Malformed
from securetm.sessions.exchanges import CoordinatorExchange
from securetm.sessions.framing import HASH, Reader, hashed, head, listed, places_bytes
from securetm.sessions.identities import KEY, SIGNATURE, PinnedRoster
from securetm.sessions.labels import Label
from securetm.sessions.session_memory import SessionMemory

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
