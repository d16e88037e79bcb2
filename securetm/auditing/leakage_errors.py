"""Errors of audits that cannot be made, and of attacks that ask for more than their adversary sees."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class NotGranted(SecuretmError):
    """the attack asked for the channel {channel!r}, which {adversary} does not see or the attack does not declare"""

    channel: str
    adversary: str
    hint = "name the channel among the attack's needs; if the threat model does not grant it, no attack may read it"


class NotRecorded(Misuse):
    """{path} was run without keeping its messages"""

    path: str
    hint = "repeat the run with `securetm run --record`: an audit reads the messages that really passed"


class NothingToJudgeBy(Misuse):
    """{path} does not hold the documents of {party}, so nobody can say whether an attack guessed them"""

    path: str
    party: str
    hint = (
        "a coordinator has none: audit a run of the same plan by `securetm run --record`, whose parties send the same messages"
    )


class NothingToAttack(Misuse):
    """no attack of the plan {plan!r} is made for {what}"""

    plan: str
    what: str
    hint = "choose another plan, or leave --run away: then the audit makes the runs that it needs"


class NothingInTime(Misuse):
    """no trial of the plan {plan!r} can tell anything of this run in that time: {why}"""

    plan: str
    why: str
    hint = "give more time with --minutes, or choose another plan"


class NotTestable(SecuretmError):
    """the attack cannot be tried here: {why}"""

    why: str
    hint = "the audit gives the attack the verdict `not tested`, with this reason"


class BrokenAttack(SecuretmError):
    """the attack {attack!r} does not both declare and give {part}"""

    attack: str
    part: str
    hint = "in a plan, name what the attack declares; in an attack's file, declare exactly the measures that its judge gives"


class DamagedEvidence(SecuretmError):
    """the kept results {name} cannot be read: {problem}"""

    name: str
    problem: str
    hint = "remove the file, and make it again with `securetm audit full --evidence FOLDER`"


class RunNotPossible(Misuse):
    """{where}: the runs that it asks for cannot be made: {problem}"""

    where: str
    problem: str
    advised: str
    hint = "{advised}"


class SmallerUnit(Misuse):
    """the attack {attack!r} guesses at whole documents, and a claim about a {unit} says nothing of those"""

    attack: str
    unit: str
    hint = "try such a claim with many_run_epsilon, which tries the noise of one unit whatever it is"


class NotFinished(Misuse):
    """{path} is no finished run: {problem}"""

    path: str
    problem: str
    hint = "go on with it (`securetm run --resume {path}`) until it ends; what its parties refuse has to be begun anew"
