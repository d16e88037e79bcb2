"""Writes protocols/vectors/shamir.json and masked_sum.json: whole sessions with seeded entropy, and messages to refuse.

Run as `python -m tests.aggregation.make_vectors`; a test fails if the files are not what this makes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import (
    COMMIT_SIZE,
    HEADER_SIZE,
    PLACE_SIZE,
    REVEAL_SIZE,
    Kind,
    Outcome,
    read_outcome,
)
from securetm.entropy import Seeded
from securetm.resources import data_folder
from securetm.sessions.framing import VERSION, Reader, places_bytes
from securetm.sessions.identities import SIGNATURE, identity_of
from securetm.testing.known_secrets import KnownSecrets
from tests.aggregation.played import COORDINATOR, TERMS, Played, flat, identity_key, names, own_store, signed_again, vectors_of

N, ROUNDS = 4, 2
SETUP = "set-up"
Step = dict[str, str]


def text(made: Any) -> str:
    """A file's text."""
    return json.dumps(made, indent=1) + "\n"


# ---- Shamir ----------------------------------------------------------------------------------------------------------


def shamir_vectors() -> dict[str, Any]:
    """Shares of fixed secrets under drawn coefficients, and shares that make no secret."""
    cases = [("one of one", [b"\1" * 32], 1, (1,)), ("the smallest and the largest", [bytes(32), b"\xff" * 32], 2, (1, 2, 3))]
    cases += [("points are places plus one, not numbers of order", [b"\5" * 32], 3, (2, 5, 9, 4096))]
    cases += [("all", [b"a" * 32], 5, tuple(range(1, 6)))]
    good = []
    for n, (name, secrets, threshold, points) in enumerate(cases):
        key = bytes([n + 1]) * 32
        dealt = shamir.deal(secrets, points, threshold, Seeded(key, unsafe=True))
        drawn = Seeded(key, unsafe=True).bytes(48 * len(secrets) * (threshold - 1))
        rows = zip(points, dealt, strict=True)
        shares = {str(point): [share.to_bytes(33, "big").hex() for share in row] for point, row in rows}
        facts = {"secrets": [s.hex() for s in secrets], "threshold": threshold, "drawn": drawn.hex(), "shares": shares}
        good.append({"name": name, **facts})
    first = {int(point): int(row[0], 16) for point, row in good[1]["shares"].items()}
    bad = [
        {"name": "a share with one bit turned", "points": [1, 2], "shares": [first[1] ^ 1, first[2]]},
        {"name": "two shares of one holder's under two points", "points": [1, 2], "shares": [first[1], first[1]]},
        {"name": "points exchanged", "points": [2, 1], "shares": [first[1], first[2]]},
    ]
    for one in bad:
        one["why"] = "the value at zero is not the secret, so that it does not fit its commitment"
        one["value"] = shamir.combine(tuple(one["points"]), one["shares"]).to_bytes(33, "big").hex()
        one["shares"] = [share.to_bytes(33, "big").hex() for share in one["shares"]]
    number = {"name": "a share that is no number below the prime", "share": shamir.PRIME.to_bytes(33, "big").hex()}
    number |= {"refusal": "Malformed", "why": "two encodings of one share would have two hashes"}
    return {"prime": hex(shamir.PRIME), "good": good, "bad": bad, "not_a_share": [number]}


# ---- sessions --------------------------------------------------------------------------------------------------------


class Logged(Played):
    """A session that writes down every delivery and every end of a wave."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.steps: list[Step] = []
        self.rounds = 0

    def run(self, middle: Any, parties: Any) -> None:
        where = SETUP if not self.steps else f"round {self.rounds}"
        self.rounds += where != SETUP
        waiting = {name: list(exchange.begin()) for name, exchange in parties.items()}
        while waiting:
            for name, out in waiting.items():
                for _, message in out:
                    if not self.gone(name, message[1]):
                        self.note(where, name, COORDINATOR, message)
                        middle.receive(name, message)
            self.steps.append({"in": where, "ends": "wave"})
            waiting = {}
            for name, message in middle.expire(()):
                self.note(where, COORDINATOR, name, message)
                waiting[name] = list(parties[name].receive(COORDINATOR, message))

    def note(self, where: str, sender: str, to: str, message: bytes) -> None:
        kind = Kind(message[1]).name.lower()
        self.steps.append({"in": where, "from": sender, "to": to, "kind": kind, "message": message.hex()})


def seeded(name: str) -> Seeded:
    """A party's entropy in a vector."""
    return Seeded(entropy_key(name), unsafe=True)


def entropy_key(name: str) -> bytes:
    """The key of that entropy."""
    return hashlib.sha256(b"entropy of " + name.encode()).digest()


def session(consistency: bool) -> tuple[dict[str, Any], Logged]:
    """A set-up of two rounds; everybody is in the first, and in the second one party leaves before it sends its vector.

    The library draws the secrets of ML-KEM by itself, so that those in the file are told again.
    """
    members, vectors = names(N), vectors_of(names(N))
    played = Logged(MaskedSum(consistency=consistency), members, entropy=seeded)
    known = KnownSecrets(in_turn=True, told=known_secrets(consistency))
    with known.come_again():
        played.prepare(ROUNDS)
    answers = []
    for number in range(ROUNDS):
        played.leaves = {Kind.MASKED: {members[2]}} if number else {}
        answer = played.play(played.cohort(number), vectors)
        answers.append({"round_id": played.cohort(number).round_id.hex(), "survivors": list(answer.survivors)})
        answers[-1]["total"] = flat(answer).tolist()
    threshold = played.aggregation._threshold(N)
    facts = {"consistency": consistency, "threshold": threshold, "colluding": 0, "rounds": ROUNDS, "bits": 32}
    roster = {"session": played.roster.session.hex(), "profile": played.roster.profile.hex(), "members": list(members)}
    keys = {m: {"identity": identity_key(m).hex(), "entropy": entropy_key(m).hex()} for m in members}
    made = {
        **facts,
        "roster": roster,
        "private": keys,
        "told": [
            {"key": public.hex(), "secret": secret.hex(), "ciphertext": ciphertext.hex()}
            for public, pairs in known.told.items()
            for secret, ciphertext in pairs
        ],
        "vectors": {m: v.tolist() for m, v in vectors.items()},
        "answers": answers,
    }
    return {**made, "steps": played.steps}, played


def known_secrets(consistency: bool) -> dict[bytes, list[tuple[bytes, bytes]]]:
    """By public key, what the present file has of ML-KEM."""
    path, found = data_folder("protocols") / "vectors" / "masked_sum.json", dict[bytes, list[tuple[bytes, bytes]]]()
    sessions = json.loads(path.read_text())["sessions"] if path.is_file() else []
    told = [row for one in sessions if one["consistency"] == consistency for row in one.get("told", ())]
    for row in told:
        found.setdefault(bytes.fromhex(row["key"]), []).append((bytes.fromhex(row["secret"]), bytes.fromhex(row["ciphertext"])))
    return found


# ---- what must be refused --------------------------------------------------------------------------------------------

Change = Callable[[bytes], bytes]


def flip(at: int) -> Change:
    return lambda m: m[:at] + bytes([m[at] ^ 1]) + m[at + 1 :]


def turn(at: int) -> Change:
    """A bit so far before the end."""
    return lambda m: flip(len(m) + at)(m)


def only(size: int, keep: Sequence[int]) -> Change:
    return lambda m: m[:2] + len(keep).to_bytes(2, "big") + b"".join(m[4 + size * n : 4 + size * (n + 1)] for n in keep)


def lists(survivors: Sequence[int], dropped: Sequence[int]) -> Change:
    def change(message: bytes) -> bytes:
        reader = Reader(message, "")
        outcome = read_outcome(reader, N)
        return Outcome(outcome.at, tuple(survivors), tuple(dropped)).body(Kind(message[1])) + bytes(reader.rest())

    return change


def signers(message: bytes, keep: Sequence[int]) -> bytes:
    reader = Reader(message, "")
    outcome = read_outcome(reader, N)
    given = reader.entries(reader.places(N), SIGNATURE)
    return outcome.body(Kind.UNMASK) + places_bytes(keep) + b"".join(given[place] for place in keep)


def bad_ones(played: Logged) -> list[dict[str, str]]:
    """For each: where in the session, what arrives there instead, its refusal, and the attack."""
    steps, reveal, first, found = played.steps, REVEAL_SIZE, played.members[0], list[dict[str, str]]()

    def signed(change: Change, who: str = first) -> Change:
        signer = identity_of(who, played.roster, own_store(who))
        return lambda message: signed_again(signer, change(message[:-SIGNATURE]) + bytes(SIGNATURE))

    def bad(kind: str, change: Change, refusal: str, why: str, who: str = first) -> None:
        at = next(n for n, s in enumerate(steps) if s.get("kind") == kind and who in (s["to"], s["from"]))
        message = change(bytes.fromhex(steps[at]["message"]))
        found.append({"instead_of": str(at), "kind": kind, "message": message.hex(), "refusal": refusal, "why": why})

    bad("commits", lambda m: b"\3" + m[1:], "AnotherVersion", "a downgrade to version 3, which has X25519 alone")
    bad("commit", lambda m: b"\3" + m[1:], "AnotherVersion", "a downgrade to version 3, which has X25519 alone")
    bad("commits", lambda m: m[:-1], "Malformed", "cut off")
    bad("commits", lambda m: m + b"\0", "Malformed", "bytes behind the end")
    bad("commits", only(COMMIT_SIZE, (0, 2, 1, 3)), "Malformed", "places out of order: two readings of one list")
    bad("commits", flip(4 + COMMIT_SIZE + 10), "BadSignature", "the coordinator commits in another party's name")
    bad("commits", only(COMMIT_SIZE, (1, 2, 3)), "ChangedMessage", "others are told that this party is not there")
    bad("commits", only(COMMIT_SIZE, (0, 1)), "CohortTooSmall", "a cohort of a victim and a colluding party")
    bad("commits", flip(4 + COMMIT_SIZE + 40), "BadSignature", "the coordinator puts its own X25519 key in another's place")
    bad("commits", flip(4 + COMMIT_SIZE + 70), "BadSignature", "the coordinator puts its own ML-KEM key in another's place")
    bad("reveals", flip(4 + reveal + 40), "BadSignature", "the coordinator reveals another number in a party's place")
    bad("reveals", only(reveal, (0, 1)), "CohortTooSmall", "a cohort of a victim and a colluding party")
    heard = played.members[1]
    bad("reveals", turn(-1), "NotSealedForUs", "a proof that the coordinator changed", heard)
    bad("reveals", turn(-17), "NotSealedForUs", "a ciphertext that is not the sender's: shares would be sealed under it", heard)
    bad("delivery", flip(2), "WrongSetup", "shares of another set-up")
    bad("delivery", lambda m: m[:-1] + bytes([m[-1] ^ 1]), "NotSealedForUs", "shares that were changed on the way")
    bad("commit", flip(3), "Malformed", "a party speaks for another")
    bad("commit", flip(20), "BadSignature", "a commitment that its party did not sign")
    low = signed(lambda m: m[:36] + bytes(32) + m[68:])
    bad("commit", low, "BadKey", "an X25519 key of small order, with which everybody has the same secret")
    bad("commit", signed(lambda m: m[:68] + b"\xff" * 1_184), "BadKey", "no ML-KEM key: numbers beyond its modulus")
    bad("reveal", flip(REVEAL_SIZE + 5), "BrokenCommitment", "commitments to secrets other than those signed")
    bad("reveal", lambda m: m[:-1], "Malformed", "a ciphertext too short for one that follows in the roster")
    gone = played.members[2]
    bad("shares", signed(turn(-1), gone), "FalseSecret", "a copy that does not open to the secret of the pair", gone)
    bad("shares", signed(turn(-70)), "SecretsDisagree", "hashes of other secrets than the other end of the pair has")
    bad("stored", signed(flip(40)), "SharesDisagree", "a holder says that it was dealt other shares")
    bad("masked", flip(80), "BadSignature", "a header that its party did not sign")
    bad("masked", lambda m: m[:-4], "BadVector", "a vector of another size")
    bad("masked", lambda m: m[:HEADER_SIZE] + m[HEADER_SIZE:] * 2, "BadVector", "a vector of another size")
    bad("masked", lambda m: m[:-1] + bytes([m[-1] ^ 1]), "AnotherVector", "another vector under a header that its party signed")
    bad("masked", flip(40), "UnknownRound", "a vector for another round")
    bad("unmasked", signed(flip(4 + PLACE_SIZE + 32)), "FalseShare", "a share that was not dealt")
    kind = "survivors" if played.aggregation.consistency else "unmask"
    bad(kind, lists((0, 1, 2, 3), (3,)), "SetsOverlap", "both secrets of one party, which open its vector")
    bad(kind, lists((0, 1, 2), ()), "SetsIncomplete", "a party is left out of both lists")
    bad(kind, lists((1, 2, 3), (0,)), "CalledDropped", "the mask key of a party whose vector has been sent")
    bad(kind, lists((0, 1), (2, 3)), "TooFewSurvivors", "the sum over too few")
    bad(kind, flip(10), "WrongSetup", "a request about another set-up")
    bad(kind, flip(40), "UnknownRound", "a request about another round: replay")
    bad(kind, flip(69), "OutOfStep", "a request about another prekey")
    if played.aggregation.consistency:
        bad("unmask", lists((0, 1, 2), (3,)), "OtherSurvivors", "a list that this party did not sign")
        bad("unmask", lambda m: signers(m, (0, 1)), "TooFewSignatures", "a list that too few signed")
        bad("unmask", lambda m: m[:-1] + bytes([m[-1] ^ 1]), "BadSignature", "a signature that nobody made")
    return found


def masked_vectors() -> dict[str, Any]:
    """Two sessions, with and without signatures under the survivors, and what must be refused in each."""
    sessions = []
    for consistency in (False, True):
        made, played = session(consistency)
        sessions.append({**made, "bad": bad_ones(played)})
    terms = {"layout": [[block.name, list(block.shape)] for block in TERMS.layout], "reach": TERMS.reach}
    return {"protocol": f"masked_sum, version {VERSION}", "terms": terms, "sessions": sessions}


FILES: dict[str, Callable[[], dict[str, Any]]] = {"shamir.json": shamir_vectors, "masked_sum.json": masked_vectors}


def main() -> None:
    """Writes the files."""
    for name, make in FILES.items():
        (data_folder("protocols") / "vectors" / name).write_text(text(make()))


if __name__ == "__main__":
    main()
