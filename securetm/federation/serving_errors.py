"""Why a coordinator cannot serve, or had to stop. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class UnitNotInPlan(Misuse):
    """the plan does not say whom the budget of profile {profile} protects, and no role sees all documents to find out"""

    profile: str
    hint = 'write unit = "document" under [privacy] of the plan, or unit = "person" where every party\'s documents name persons'


class AnotherPlanThere(Misuse):
    """{path} holds a run under another {what} than the one that was given"""

    path: str
    what: str
    hint = 'give the plan that the run began with, or another folder: [coordinator] out = "..." begins a new run'


class PortInUse(Misuse):
    """nothing can listen at {address}: {problem}"""

    address: str
    problem: str
    hint = "end the program that uses the port (`ss -ltnp` shows it), or choose another `metrics` or `status` in [coordinator]"


class Stopped(SecuretmError):
    """the coordinator was stopped after round {rounds}; nothing is lost"""

    rounds: int
    command: str
    hint = "go on with `{command}`: the parties connect again by themselves, and training goes on from the last kept round"


class TooFewCame(SecuretmError):
    """{missing} did not come within {seconds} seconds ({came} of {of} parties are connected); {refused}"""

    missing: str
    seconds: int
    came: int
    of: int
    refused: str
    command: str
    hint = (
        "ask these parties what `securetm join` says; then go on with `{command}`. With `survivors` under [coordinator] a run "
        "goes on without parties that are missing, and with `patience` it waits longer"
    )


class NoProgress(SecuretmError):
    """no round ended within {seconds} seconds and {sessions:session|sessions}; the last one failed: {problem}"""

    seconds: int
    sessions: int
    problem: str
    command: str
    hint = "`serve.jsonl` in the run's folder says which party did what; mend it and go on with `{command}`"


class NotAtWork(SecuretmError):
    """{name} does not work: {problem}"""

    name: str
    problem: str
    hint = "start it, or wait until it has started; `securetm serve` and `securetm join` say what stops them"
