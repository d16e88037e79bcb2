"""Audits that cannot be made, and attacks that ask for more than their adversary sees."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors import Misuse, SecuretmError


@dataclass(eq=False)
class NotGranted(SecuretmError):
    """the attack asked for the channel {channel!r}, which {adversary} does not see or the attack does not declare"""

    channel: str
    adversary: str
    hint = "name the channel among the attack's needs; if the threat model does not grant it, no attack may read it"


@dataclass(eq=False)
class NotRecorded(Misuse):
    """{path} was run without keeping its messages"""

    path: str
    hint = "repeat the run with `securetm run --record`: an audit reads what really passed"


@dataclass(eq=False)
class NothingToAttack(Misuse):
    """no attack of the plan {plan!r} is made for {what}"""

    plan: str
    what: str
    hint = "choose another plan, or leave --run away: then the audit makes the runs that it needs"


@dataclass(eq=False)
class UnreadableMessage(SecuretmError):
    """a message from {sender} holds no vector that its terms would allow"""

    sender: str
    hint = "the attack was not made for this way of sealing; its result is `not tested`"


@dataclass(eq=False)
class BrokenAttack(SecuretmError):
    """the attack {attack!r} does not both declare and give {part}"""

    attack: str
    part: str
    hint = "in a plan, name what the attack declares; in an attack's file, declare exactly the measures that its judge gives"


@dataclass(eq=False)
class DamagedEvidence(SecuretmError):
    """the kept results {name} cannot be read: {problem}"""

    name: str
    problem: str
    hint = "remove the file, and make it again with `securetm audit full --evidence FOLDER`"


@dataclass(eq=False)
class ClosedCiphertext(UnreadableMessage):
    """what {sender} sent is a ciphertext: without the parties' secret key it was not opened, nor was the encryption attacked"""

    hint = "the result is `not tested`: whoever has the key reads it, so try an attack that a party helps"


@dataclass(eq=False)
class NotSimulated(UnreadableMessage):
    """shadow models of the profile {sender} need more of a document than the counts of its words"""

    hint = "the attack was not made for noise inside documents; its result is `not tested`"


@dataclass(eq=False)
class EndedEarly(UnreadableMessage):
    """the training ended before the last round of its plan, so totals of {sender} are missing that shadow models have"""

    hint = "repeat the run with as many rounds as it takes, or with a budget that lasts for all of them (--epsilon)"


@dataclass(eq=False)
class RunNotPossible(Misuse):
    """{where}: the runs that it asks for cannot be made: {problem}"""

    where: str
    problem: str
    advised: str
    hint = "{advised}"


@dataclass(eq=False)
class SmallerUnit(Misuse):
    """the attack {attack!r} guesses at whole documents, and a claim about a {unit} says nothing of those"""

    attack: str
    unit: str
    hint = "try such a claim with many_run_epsilon, which tries the noise of one unit whatever it is"


@dataclass(eq=False)
class NotOneApart(UnreadableMessage):
    """the two runs differ in {sender}, and this attack needs runs that differ in exactly one party"""

    hint = "have the second run made without one party (`without = 1`); without that the result is `not tested`"


@dataclass(eq=False)
class NotFinished(Misuse):
    """{path} is no finished run: {problem}"""

    path: str
    problem: str
    hint = "go on with it (`securetm run --resume {path}`) until it ends; what its parties refuse has to be begun anew"
