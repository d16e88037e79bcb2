"""What a masked sum refuses. Names travel over the wire."""

from __future__ import annotations

from securetm.errors import Refused


class AnotherVector(Refused):
    """the masked vector of {sender} is not the one that {sender} signed"""

    sender: str
    hint = "somebody changed it on the way, or the party's memory is damaged: the party counts as silent in this round"


class WrongSetup(Refused):
    """a message belongs to another set-up"""


class BrokenCommitment(Refused):
    """{sender} reveals another number than it committed to"""

    sender: str


class ChangedMessage(Refused):
    """the coordinator forwarded another message in this party's name than this party sent ({what})"""

    what: str


class UnreadableShares(Refused):
    """the shares that {sender} sealed for this party are no numbers below the prime"""

    sender: str


class SharesDisagree(Refused):
    """{dealer} and {holder} report different shares"""

    dealer: str
    holder: str
    hint = "one of the two is damaged or lies: leave one of them out and prepare again"


class SecretsDisagree(Refused):
    """{one} and {other} have different secrets for the masks between them"""

    one: str
    other: str
    hint = "one of the two is damaged or lies: leave one of them out and prepare again"


class FalseShare(Refused):
    """{sender} gave a false share of a secret of {owner}"""

    sender: str
    owner: str
    hint = "that party's memory is damaged, or it lies: leave it out and prepare again"


class FalseSecret(Refused):
    """the shares of {sender} do not give the secret that it committed to"""

    sender: str
    hint = "that party's software is at fault, or it lies: leave it out and prepare again"


class SetsOverlap(Refused):
    """{name} is listed both as a survivor and as dropped out: both of its shares are asked for"""

    name: str


class SetsIncomplete(Refused):
    """{name} is listed neither as a survivor nor as dropped out"""

    name: str


class CalledDropped(Refused):
    """{name} is asked to open a round as a survivor, and is listed there as dropped out"""

    name: str


class TooFewSurvivors(Refused):
    """a round with {found} survivors is below this party's minimum of {need}"""

    found: int
    need: int


class AlreadyUnmasked(Refused):
    """this party has already answered for other survivors in round {round_id}"""

    round_id: str


class OtherSurvivors(Refused):
    """the survivors are not those that this party signed"""


class TooFewSignatures(Refused):
    """{found:party|parties} signed this list of survivors where {need} are needed"""

    found: int
    need: int


class OutOfStep(Refused):
    """{sender} is at prekey {found} and this role at {expected}"""

    sender: str
    found: int
    expected: int
    hint = "one of them was set back to an old copy of its memory; prepare again"


class PrekeyReused(Refused):
    """{sender} used prekey {index} a second time: its memory was set back to an old copy"""

    sender: str
    index: int
    hint = "that party has to prepare again before it takes part"


class RestoredState(Refused):
    """this party's memory was set back to an old copy: a prekey that it takes for fresh was used before"""

    hint = "prepare again; until then this party keeps silent"


class NotPrepared(Refused):
    """no prekey is left for a masked round"""

    hint = "run the set-up exchange (prepare) first"


class RoundAbandoned(Refused):
    """round {round_id} was begun before with another vector or set-up, so that it is abandoned"""

    round_id: str
    hint = "ask under a new round id; masking another vector for the same round could reveal their difference"
