"""A federation that cannot go on, and answers that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse, Refused, SecuretmError


@dataclass(eq=False)
class TooFewParties(SecuretmError):
    """too many parties left ({left} of {of} remain, need {need})"""

    left: int
    of: int
    need: int
    hint = "wait for more parties, or agree on a profile with a lower threshold"


@dataclass(eq=False)
class Diverged(SecuretmError):
    """the model holds numbers that are not finite after round {rounds}"""

    rounds: int
    hint = "its steps were too long: choose a smaller learning_rate"


@dataclass(eq=False)
class PartyRefused(SecuretmError):
    """{party} refused: {reason}"""

    party: str
    reason: str
    hint = "the reason is in that party's own log; no details leave it"


@dataclass(eq=False)
class PartyFailed(SecuretmError):
    """{party} wrote down a failure of its own: {name}: {reason}"""

    party: str
    name: str
    reason: str
    what_to_do: str
    hint = "{what_to_do}"


@dataclass(eq=False)
class CannotWrite(Misuse):
    """{path} cannot be written: {problem}"""

    path: str
    problem: str
    hint = "make room on the disk, check the permissions, or choose another --out; `securetm run --resume` goes on with a run"


@dataclass(eq=False)
class OpenToOthers(Misuse):
    """{path} is for its owner alone, and others on this machine may {what} it (mode {mode})"""

    path: str
    what: str
    mode: str
    hint = "close it if nobody has looked into it or changed it (chmod -R go= {path}), or take another that is not there yet"


@dataclass(eq=False)
class OwnedByAnother(Misuse):
    """{path} belongs to another account (number {owner}), which can read and change what is in it"""

    path: str
    owner: int
    hint = 'run as that account; or, if it is to be yours: chown -R "$(id -u)" {path}'


@dataclass(eq=False)
class SystemRefused(Misuse):
    """{path} {what}: {why}"""

    path: str
    what: str
    why: str
    hint = "check the path, the permissions and the room on the disk; --debug shows where it happened"


@dataclass(eq=False)
class RunExists(Misuse):
    """{path} already holds a run"""

    path: str
    hint = "choose another --out, or continue it with `securetm run --resume {path}`"


@dataclass(eq=False)
class NotARun(Misuse):
    """{path} holds no {what}"""

    path: str
    what: str
    hint = "give the directory that `securetm run` printed; an unfinished run is continued with `securetm run --resume`"


@dataclass(eq=False)
class RunBusy(Misuse):
    """another process is working on {path}"""

    path: str
    hint = "wait for it, or end it first"


@dataclass(eq=False)
class DamagedStore(SecuretmError):
    """{path} is damaged: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy; an interrupted run never leaves a damaged file behind, a full disk or another program does"


@dataclass(eq=False)
class ChangedFile(SecuretmError):
    """{path} is not as its run wrote it: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy of the run's folder: a run's words, model and result belong together; else train again"


@dataclass(eq=False)
class Interrupted(SecuretmError):
    """the run was interrupted after round {rounds}; nothing is lost"""

    path: str
    rounds: int
    hint = "continue it with `securetm run --resume {path}`"


@dataclass(eq=False)
class WorkerDied(SecuretmError):
    """the worker process of {parties} ended"""

    parties: str
    hint = "look for its last message above; continue with `securetm run --resume`"


@dataclass(eq=False)
class BadWordList(Refused):
    """the list of words from {party} {problem}"""

    party: str
    problem: str
    hint = "the party runs another version, or is not honest; leave it out or correct its software"


@dataclass(eq=False)
class EmptyVocabulary(Misuse):
    """none of {words:word|words} is in enough and not too many documents (at least {min_df}, at most {max_df})"""

    words: int
    min_df: str
    max_df: str
    hint = (
        "take fewer documents for enough or more for too many: --set vocabulary.min_documents=1, --set vocabulary.max_share=1 "
        "(min_df and max_df in Python)"
    )


class NoPersons(Misuse):
    """the unit of privacy is the person, but this corpus does not say whose documents they are"""

    hint = "name the column of persons (--person COLUMN), or choose the document as the unit (--set privacy.unit=document)"


class NotAnswered(SecuretmError):
    """this question was not answered with a sum"""

    hint = "only the role that opens the sum can read it"


@dataclass(eq=False)
class TooFewForProfile(Misuse):
    """{found:party is|parties are} fewer than the {need} that profile {profile!r} needs"""

    found: int
    need: int
    profile: str
    hint = "deal the documents out to more parties, or take another profile: `securetm explain open` says what that gives up"


@dataclass(eq=False)
class NoWordKnown(Misuse):
    """no document has a word of {file}"""

    file: str
    hint = "take the list of words that belongs to these documents, with its words as the tokeniser leaves them: in lower case"


@dataclass(eq=False)
class TooFewToTakePart(Misuse):
    """{party} has too few documents to take part: with as many from {left} parties, a sum would hold fewer than {need}"""

    party: str
    need: int
    left: int  # parties over which a sum may be opened, where others are missing
    hint = "join with more documents, or agree on a profile with a smaller minimum_documents; the others are told nothing"


@dataclass(eq=False)
class NothingLearned(SecuretmError):
    """no round was trained, so the model in {path} knows nothing: the budget for these documents is spent or too small"""

    path: str
    hint = (
        "`securetm budget ledger {path}` shows what was spent (with --ledgers, by all runs), `securetm budget profile NAME` "
        "what one round costs"
    )
