"""Runs that cannot go on, and run folders that cannot be read. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class Diverged(SecuretmError):
    """the model holds numbers that are not finite after round {rounds}"""

    rounds: int
    hint = "the steps of the training were too long: choose a smaller learning_rate"


class PartyRefused(SecuretmError):
    """{party} refused: {reason}"""

    party: str
    reason: str
    hint = "the reason is in that party's own log; no details leave it"


class PartiesMissing(SecuretmError):
    """the session ended, because these parties refused or did not answer in time: {names}"""

    names: str
    hint = (
        "the run goes on from its last checkpoint when they are back; `survivors` in [coordinator] lets it go on without them"
    )


class PartyFailed(SecuretmError):
    """{party} logged a failure of its own: {name}: {reason}"""

    party: str
    name: str
    reason: str
    what_to_do: str
    hint = "{what_to_do}"


class RunExists(Misuse):
    """{path} already holds a run"""

    path: str
    hint = "choose another --out, or continue it with `securetm run --resume {path}`"


class NotARun(Misuse):
    """{path} holds no {what}"""

    path: str
    what: str
    hint = "give the directory that `securetm run` printed; an unfinished run is continued with `securetm run --resume`"


class RunBusy(Misuse):
    """another process is working on {path}"""

    path: str
    hint = "wait for it, or end it first"


class DamagedStore(SecuretmError):
    """{path} is damaged: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy; an interrupted run never leaves a damaged file behind, a full disk or another program does"


class ChangedFile(SecuretmError):
    """{path} is not as its run wrote it: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy of the run's folder: a run's words, model and result belong together; else train again"


class Interrupted(SecuretmError):
    """the run was interrupted after round {rounds}; nothing is lost"""

    path: str
    rounds: int
    hint = "continue it with `securetm run --resume {path}`"


class WorkerDied(SecuretmError):
    """the worker process of {parties} ended"""

    parties: str
    hint = "look for its last message above; continue with `securetm run --resume`"


class NoWordKnown(Misuse):
    """no document has a word of {file}"""

    file: str
    hint = "take the list of words that belongs to these documents, with its words as the tokeniser leaves them: in lower case"


class TooFewToTakePart(Misuse):
    """{party} has too few documents to take part: with as many from {left} parties, a sum would hold fewer than {need}"""

    party: str
    need: int
    left: int  # parties over which a sum may be opened, where others are missing
    hint = "join with more documents, or agree on a profile with a smaller minimum_documents"


class PersonAtSeveralParties(Misuse):
    """{persons:person has|persons have} documents at several parties, and the budget is each person's at one party"""

    persons: int
    hint = (
        "deal out whole persons (--partition equal or dirichlet), or give all documents of a person to one party; where that "
        "cannot be, a person at m parties has m times the budget: protect single documents (--set privacy.unit=document)"
    )


class RunHoldsLedgers(Misuse):
    """{path} holds a ledger that is not of this run alone: {ledger}"""

    path: str
    ledger: str
    hint = "what was spent of documents has to outlive runs: move the folder of ledgers to another place first"


class NotByBlocks(Misuse):
    """{party} reads its documents from disk, block by block, and {what} needs all of them in memory at once"""

    party: str
    what: str
    hint = "take another model or profile, or give the party as many documents as fit into memory"
