"""Why an engine could not carry out a task. What a worker itself raises comes back as what it is."""

from __future__ import annotations

from securetm.errors import SecuretmError


class TaskGivenUp(SecuretmError):
    """a task was given up: {losses} workers were lost with it, and the last one {how}"""

    losses: int
    how: str  # the last one ended: "was killed by SIGKILL"
    hint = "a worker that is killed again and again usually lacks memory: take fewer workers in [engine], or smaller blocks"


class WorkerFailed(SecuretmError):
    """a worker failed with {name}, at {where}"""

    name: str  # of the class of the exception, which cannot be sent between processes; what it said may quote documents
    where: str
    hint = "this is a fault of the code at that place: please report it to its author"


class InWorker(SecuretmError):
    """this happened in a worker, at {where}"""

    where: str  # the last places in the code that the exception came through
    hint = "read the error that this one is the cause of"


class CannotBeSent(SecuretmError):
    """{what} cannot be sent to another process ({problem})"""

    what: str
    problem: str
    hint = "parts that another process carries out have to be picklable; choose the engine in-process for this one"
