"""A federation on one machine. It runs every role and keeps their stores apart.

Only here are all roles in reach, so it decides nothing: coordinator and parties run as they would remotely. Documents stay in
the process that holds them.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from securetm.accounting.ledger import Ledger
from securetm.answers.block_answers import IN_PROCESS
from securetm.contracts import Engine
from securetm.corpus.corpus import Corpus
from securetm.data_classes import dataclass, field, replace
from securetm.entropy import OperatingSystem
from securetm.errors import Failed
from securetm.federation.budget.ledgers import own_budget
from securetm.federation.coordinator.coordinator import Coordinator, Trained, coordinator_of
from securetm.federation.coordinator.rounds import Attendance, NoBudgetLeft
from securetm.federation.coordinator.run_result import write_result
from securetm.federation.coordinator.training import rounds_kept
from securetm.federation.folder import RESULT, RunFolder, alone_in, check, result_of
from securetm.federation.party.failure_log import failures_in
from securetm.federation.party.hidden_words import UNKNOWN
from securetm.federation.party.party import WORDS, Party
from securetm.federation.party.state import learned_in
from securetm.federation.party_store import PartyStore
from securetm.federation.release import release
from securetm.federation.simulation.comparison import compare
from securetm.federation.simulation.result import origin_of_run, summary
from securetm.federation.store import COMMON, SqliteStore
from securetm.federation.transcript import Parties, Transcript, WorkTimer
from securetm.models.quality import diversity, top_words
from securetm.plans.profiles import BLIND
from securetm.private_files import check_private
from securetm.stages import Stages


def execute(
    folder: RunFolder,
    stages: Stages,
    *,
    workers: int = 0,
    comparison: bool = True,
    parties: Parties | None = None,
    engine: Engine = IN_PROCESS,
) -> dict[str, Any]:
    """Starts or resumes a run and takes it to its end. Interrupted at any moment, it can be called again.

    The parties run in this process or in its workers, unless `parties` brings what carries messages to them. Where they run
    in this process, the engine computes their answers, of one after the other. The caller closes it.
    """
    _one_thread()
    if (folder.path / RESULT).is_file():
        ended = result_of(folder.path)
        check(folder.path, *([folder.model] if ended["rounds"] else []), folder.words)
        return ended
    with alone_in(folder.path):
        with WorkTimer(Transcript(folder.path / "transcript"), stages) as timer:
            try:
                trained = train(folder, timer, workers, parties or _parties(folder, workers, engine))
                compared = compare(folder, trained, make_party, timer, comparison)
            except KeyboardInterrupt as stop:
                raise Failed(
                    "the run was interrupted after round {rounds}; nothing is lost",
                    hint="continue it with `securetm run --resume {path}`",
                    path=str(folder.path),
                    rounds=rounds_kept(folder.coordinator),
                ) from stop
            except NoBudgetLeft as limit:
                raise _exhausted(folder, limit.party) from limit
            result = summary(folder, trained, compared, timer)
        write_result(folder, result)
    return result


def _exhausted(folder: RunFolder, party: str) -> Failed:
    """Returns the error with the ledger's path: the coordinator knows the party, and no file."""
    path = folder.ledger(party)
    with Ledger.read(path) as ledger:
        bounded = sum(bool(run.answers) for run in ledger.runs())
        return Failed(
            "{path} allows no other answer of {party}: of epsilon {epsilon:upward}, "
            "{runs:run has|runs have} spent {spent:upward}",
            hint="`securetm budget ledger {path}` shows what each run spent, and --allow there allows more, knowing what that "
            "gives up; a run without --ledgers has a budget of its own, a trial's, which guards nothing across runs",
            path=str(path),
            party=party,
            epsilon=ledger.budget.epsilon,
            spent=ledger.spent().epsilon,
            runs=bounded,
        )


def make_party(folder: RunFolder, name: str, engine: Engine = IN_PROCESS) -> Party:
    """Makes one party from its own folder, in a worker or in this process. The engine computes its answers."""
    _one_thread()
    # Not synced: all parties share this machine's disk, and a run that lost its power begins a new session with new keys.
    store, corpus = PartyStore(folder.party(name), synced=False), documents_of(folder, name)
    # The ledger, and what the party signed of the others' under a budget, outlive the run.
    budget, path = folder.agreement.budget, folder.ledger(name)
    others = SqliteStore(path.with_suffix(".others"), COMMON) if budget is not None else None
    ledger = Ledger.open(path, name, own_budget(path, budget))
    own = name, folder.members, folder.agreement, corpus, store, OperatingSystem(), folder.keys, ledger, others
    return Party(*own, folder.name, simulated=True, engine=engine)


def documents_of(folder: RunFolder, name: str) -> Corpus:
    check(folder.path, folder.documents(name))
    check_private(folder.documents(name))
    return Corpus.load(folder.documents(name))


def _one_thread() -> None:
    """Limits torch to one thread: two threads on busy cores are many times slower than one."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


# ---- the federation itself -----------------------------------------------------------------------------------------


def train(
    folder: RunFolder,
    stages: Stages,
    workers: int = 1,
    parties: Parties | None = None,
    coordinating: Callable[..., Coordinator] = Coordinator,
    arrivals: Mapping[str, float] | None = None,
) -> Trained:
    """Runs the federation from invitation to the finished model. An audit may bring malicious roles, or a real network."""
    agreement, asked = folder.agreement, parties or _parties(folder, workers)
    parties_said = f"{len(folder.members)} parties"
    stages.stage(f"words of {parties_said}, and the first round", 1)
    title = f"training {agreement.plan.model.name} with {parties_said}"
    with _failures_raised(folder):
        shown = coordinator_of(folder, asked, Attendance(), coordinating, stages=stages, title=title, arrivals=arrivals)
        with closing(asked), shown as coordinator:
            trained = coordinator.run()
    if agreement.profile.aggregation.opened_by == "parties":
        trained = _learned_by_parties(folder, trained)
    if trained.rounds and agreement.plan.vocabulary.source == BLIND:
        trained = replace(trained, vocabulary=words_of_columns(folder))
    if trained.rounds:
        release(folder.path, agreement.model, trained.state, trained.vocabulary, origin_of_run(folder))
    return trained


@contextmanager
def _failures_raised(folder: RunFolder) -> Iterator[None]:
    """Raises a failure that a party logged meanwhile: the party tells the coordinator nothing, but its user must know."""
    before = {name: len(failures_in(folder.party(name))) for name in folder.members}
    problem: Exception | None = None
    try:
        yield
    except Exception as raised:  # noqa: BLE001 - raised again below, unless a party's failure is behind it
        problem = raised
    for name in folder.members:
        for one in failures_in(folder.party(name))[before[name] :]:
            raise Failed(
                "{party} logged a failure of its own: {name}: {reason}",
                hint="{what_to_do}",
                party=name,
                name=one.name,
                reason=one.reason,
                what_to_do=one.advice,
            ) from problem
    if problem is not None:
        raise problem


def _learned_by_parties(folder: RunFolder, trained: Trained) -> Trained:
    """Reads the model from the first party's store: the coordinator never saw it."""
    with closing(PartyStore(folder.party(folder.members[0]))) as store:
        memory, _ = store.kept_memory(max(store.kept_serials()))
        held_out = store.rows("SELECT value FROM figures WHERE name = 'everybody held_out'")
    state = learned_in(memory)
    topics = folder.agreement.model.topics(state)
    figures = {"npmi": float("nan"), "diversity": diversity(top_words(topics, 25)), "held_out": held_out[0][0]}
    return Trained(state, trained.vocabulary, trained.rounds, figures)


def words_of_columns(folder: RunFolder) -> tuple[str, ...]:
    """The words of the columns as the parties know them, which only a simulation may put together."""
    known = ((folder.party(name) / WORDS).read_text(encoding="utf-8").split("\n") for name in folder.members)
    return tuple(next((word for word in words if not word.startswith(UNKNOWN)), words[0]) for words in zip(*known, strict=True))


def _parties(folder: RunFolder, workers: int, engine: Engine = IN_PROCESS) -> Parties:
    if workers > 1:
        return Workers(make_party, {name: (folder, name) for name in folder.members}, workers)
    return InProcess({name: make_party(folder, name, engine) for name in folder.members})


# ---- messages to the parties: in this process, or in workers, which take bytes and return bytes as a remote party would ----


@dataclass
class InProcess:
    """All parties in this process, asked one after the other in roster order."""

    parties: Mapping[str, Party]

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:  # noqa: ARG002 - it is in memory already
        return ((name, self.parties[name].handle(message)) for name, message in requests.items())

    def present(self) -> frozenset[str]:
        return frozenset(self.parties)

    def close(self) -> None:
        for party in self.parties.values():
            party.close()


@dataclass
class Workers:
    """Parties in processes of their own. `make` builds one party by name inside its worker."""

    make: Callable[..., Party]
    arguments: Mapping[str, tuple[Any, ...]]
    workers: int
    _at: dict[str, Connection] = field(default_factory=dict)
    _processes: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Starts the workers; a spawned process inherits nothing but what it is given."""
        context = multiprocessing.get_context("spawn")
        names = list(self.arguments)
        for first in range(min(self.workers, len(names))):
            here, there = context.Pipe()
            share = {name: self.arguments[name] for name in names[first :: self.workers]}
            process = context.Process(target=_serve, args=(there, self.make, share), daemon=True)
            process.start()
            there.close()
            self._processes.append(process)
            self._at.update(dict.fromkeys(share, here))

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:  # noqa: ARG002 - it is in memory already
        """The workers run side by side, and each gets its next request when its last reply is taken.

        Two long messages that meet in one pipe would otherwise wait for each other without end.
        """
        waiting: dict[Connection, list[str]] = {}
        for name in requests:
            waiting.setdefault(self._at[name], []).append(name)
        under_way: dict[Connection, str] = {}

        def send_next(pipe: Connection) -> None:
            if waiting[pipe]:
                under_way[pipe] = waiting[pipe].pop(0)
                self._send(under_way[pipe], requests)

        for pipe in waiting:
            send_next(pipe)
        try:
            for name in requests:  # one at a time: the other workers wait with their replies
                del under_way[self._at[name]]
                reply = self._receive(name)
                send_next(self._at[name])
                yield name, reply
        finally:  # whoever stops listening leaves no reply behind for the next question
            for name in under_way.values():
                self._receive(name)

    def present(self) -> frozenset[str]:
        return frozenset(self._at)

    def close(self) -> None:
        """Ends every worker and waits for it."""
        for pipe in set(self._at.values()):
            pipe.close()
        for process in self._processes:
            process.join()

    def _send(self, name: str, requests: Mapping[str, bytes]) -> None:
        try:
            self._at[name].send((name, requests[name]))
        except OSError as problem:
            raise self._ended(name) from problem

    def _receive(self, expected: str) -> bytes:
        try:
            return self._at[expected].recv_bytes()
        except (EOFError, OSError) as problem:
            raise self._ended(expected) from problem

    def _ended(self, name: str) -> Failed:
        parties = ", ".join(n for n, pipe in self._at.items() if pipe is self._at[name])
        hint = "look for its last message above; continue with `securetm run --resume`"
        return Failed("the worker process of {parties} ended", hint, parties=parties)


def _serve(pipe: Connection, make: Callable[..., Party], share: Mapping[str, tuple[Any, ...]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the coordinator ends its workers in order
    parties = {name: make(*arguments) for name, arguments in share.items()}
    while (request := _next(pipe)) is not None:
        name, message = request
        reply = parties[name].handle(message)
        with suppress(BrokenPipeError):  # the coordinator has ended meanwhile; the next request will say so
            pipe.send_bytes(reply)
    for party in parties.values():
        party.close()


def _next(pipe: Connection) -> tuple[str, bytes] | None:
    try:
        return pipe.recv()  # type: ignore[no-any-return]
    except (EOFError, ConnectionResetError):
        return None
