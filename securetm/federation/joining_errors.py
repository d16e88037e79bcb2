"""Why a party does not join, or left. All of them are told to its own user, and to nobody else."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class NotAllowedHere(Misuse):
    """the party's policy does not allow {what} {value}, which the {where} has"""

    what: str
    value: str
    where: str
    allowed: str
    hint = "allowed: {allowed}; change [policy] of PARTY.toml only if the organisation agrees"


class HomeBusy(Misuse):
    """another process works on data set {data_set} in {home}"""

    data_set: str
    home: str
    hint = "a data set answers in one process at a time: wait for the other `securetm join`, or end it first"


class DocumentsChanged(Misuse):
    """the documents of data set {data_set} are not those that this run began with"""

    data_set: str
    path: str
    hint = (
        "put the documents back as they were: an answer to the same question over other documents would show the difference. "
        "Changed documents take part under the next plan (another seed is another plan)"
    )


class AnotherDataSet(Misuse):
    """this run was begun with data set {begun}, and not with {data_set}"""

    begun: str
    data_set: str
    hint = (
        "write `identity` in [data] of PARTY.toml as it was: an answer to the same question over another data set would show "
        "the difference. The other data set takes part under the next plan (another seed is another plan)"
    )


class LeftEarly(SecuretmError):
    """this party left before the run had ended; {answers:answer was|answers were} given, and nothing is lost"""

    answers: int
    command: str
    hint = "come back with `{command}`"
