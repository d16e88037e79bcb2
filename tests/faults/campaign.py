"""Random schedules of a few faults over six real processes: roles are killed, start again in any order, are cut off or frozen.

A seed decides the run and its faults; when they strike depends on the machine. It tests nothing itself.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from securetm.accounting.ledger import Ledger
from securetm.federation.soundness import agreed_apart
from securetm.federation.store import CoordinatorStore
from securetm.plans.origins import accepted_as
from securetm.plans.recommend import whole_plan

from ..federation.private import public_words
from .processes import COORDINATOR, FOUND, PRODLDA, Site, until
from .relay import DOWN, UP, Strike

ROUNDS = 4
SOON = 4.0  # seconds: a fault strikes at its byte, or then, if that byte does not pass
HANDED_OUT = 30.0  # seconds, after which the coordinator starts again for those that have no model yet
LDA = 'name = "lda"\nn_topics = 3'
UNJUDGED = 'stop = "rounds"'
PRIVACY = '[privacy]\nunit = "document"\n[origins]\nvocabulary = "made up for a test"'
FAULTS = ("cut", "killed", "left", "frozen", "coordinator killed", "coordinator left", "both killed", "all killed")


@dataclass(frozen=True)
class Case:
    """A run that is disturbed."""

    profile: str
    model: str = PRODLDA
    training: str = UNJUDGED
    survivors: str | int = "all"

    @property
    def paid(self) -> bool:
        """Whether a budget is spent. The noise is drawn from the operating system, so that no two models are the same."""
        return self.profile.startswith("dp")

    @property
    def parties_open(self) -> bool:
        """Whether the coordinator sees no model."""
        return self.profile in ("bfv", "ckks")

    @property
    def repeats(self) -> bool:
        """Whether an undisturbed run has the same model: no noise is in it, and all parties are in every round."""
        return not self.paid and self.profile != "ckks" and self.survivors == "all"

    def site(self, folder: Path) -> Site:
        """The files of this run."""
        told = self.paid or self.parties_open
        words = folder.parent / f"{folder.name} words"
        site = Site.of(
            folder,
            rounds=ROUNDS,
            profile=self.profile,
            model=self.model,
            training=self.training,
            vocabulary=f'source = "file"\nfile = "{words}/words.txt"' if told else FOUND,
            privacy=PRIVACY if self.paid else "",
            survivors=self.survivors,
            deadline=200 if told else 8,  # a party starts a process for ciphertexts, or tries its processor before it pays
            grace=3,
            patience=400,
        )
        words.mkdir()
        public_words(words)
        if self.paid:
            _accept_inputs(site)
        return site


def _accept_inputs(site: Site) -> None:
    """Every party's owner accepts the list of words, which is public by the plan's word only."""
    inputs = agreed_apart(whole_plan(site.trial.plan, {}), site.trial.parties).inputs
    accepted = f"[policy]\ninputs = {json.dumps([accepted_as(one) for one in inputs])}\n"
    for name in site.trial.parties:
        file = site.trial.file(name)
        file.write_text(file.read_text("utf-8") + accepted, "utf-8")


CASES = (
    Case("masked", LDA),
    Case("masked", LDA, survivors=4),
    Case("masked", PRODLDA),
    Case("masked", PRODLDA, 'stop = "held_out"\nevery = 2\npatience = 1000', survivors=4),
    Case("masked_strict", LDA, survivors=4),
    Case("open", LDA),
    Case("open", LDA, 'stop = "held_out"\nevery = 2\npatience = 1000', survivors=4),
    Case("dp-local", survivors=4),
    Case("dp-central"),
    Case("dp-distributed"),
    Case("bfv"),
    Case("ckks"),
)


@dataclass
class Campaign:
    """One schedule over one site."""

    site: Site
    rng: np.random.Generator
    befell: list[str] = field(default_factory=list)
    _undone: list[tuple[str, Callable[[], None]]] = field(default_factory=list)  # what is still to be put right
    _absent: set[str] = field(default_factory=set)
    kills: dict[str, int] = field(default_factory=dict)

    def run(self, faults: int) -> None:
        """Brings so many faults about, and puts each right at once or after others."""
        self.site.start_all()
        for _ in range(faults):
            self._strikes()
            if self.site.is_over():
                break
            self._befalls(FAULTS[int(self.rng.integers(len(FAULTS)))])
            while self._undone and self.rng.random() < 0.5:
                self._put_right(int(self.rng.integers(len(self._undone))))
        while self._undone:
            self._put_right(int(self.rng.integers(len(self._undone))))

    def finish(self) -> None:
        """Waits until everybody has the model. A coordinator that has ended starts again for those that were away."""
        site = self.site
        for _ in range(6):
            assert site.running[COORDINATOR].ended(400.0) == 0, site.standing()
            end = time.monotonic() + HANDED_OUT
            until(lambda end=end: len(site.ended()) == 6 or time.monotonic() > end, site.standing)
            if len(site.ended()) == 6:
                break
            site.start(COORDINATOR)
        assert {name: running.process.exitcode for name, running in site.running.items() if running.process.exitcode} == {}
        assert len(site.ended()) == 6, site.standing()

    def _strikes(self) -> None:
        """Waits for a byte of some party, for a while."""
        party, direction = self._party(), (UP, DOWN)[int(self.rng.integers(2))]
        strike = self.site.relay.arm(Strike(party, direction, int(np.exp(self.rng.uniform(0, 10)))))
        end = time.monotonic() + SOON
        until(lambda: strike.struck.is_set() or self.site.is_over() or time.monotonic() > end, self.site.standing)
        ended = self.site.running[COORDINATOR].process.exitcode
        assert COORDINATOR in self._absent or ended in (None, 0), self.site.standing()

    def _party(self) -> str:
        return self.site.trial.parties[int(self.rng.integers(5))]

    def _befalls(self, fault: str) -> None:
        party = self._party()
        self.befell.append(f"{fault} {party}")
        if fault == "cut":
            self.site.relay.cut(party)
        elif fault == "frozen" and party not in self._absent:
            self.site.running[party].signal(signal.SIGSTOP)
            self._later(party, lambda: self.site.running[party].signal(signal.SIGCONT))
        elif fault != "frozen":
            whom = {"both killed": (COORDINATOR, party), "all killed": (COORDINATOR, *self.site.trial.parties)}
            names = whom.get(fault, (COORDINATOR,) if fault.startswith("coordinator") else (party,))
            for name in (name for name in names if name not in self._absent):
                self._killed(name)
            if "left" not in fault:
                while self._undone and self._undone[-1][0] in names:
                    self._put_right(len(self._undone) - 1)

    def _killed(self, name: str) -> None:
        if self.site.running[name].process.exitcode is not None:  # it has its model, or all have
            return
        self.site.running[name].killed()
        self.kills[name] = self.kills.get(name, 0) + 1
        self._later(name, lambda: self.site.start(name))

    def _later(self, name: str, put_right: Callable[[], None]) -> None:
        self._absent.add(name)
        self._undone.append((name, put_right))

    def _put_right(self, place: int) -> None:
        name, put_right = self._undone.pop(place)
        self._absent.discard(name)
        put_right()


def models(site: Site) -> dict[str, bytes]:
    """The finished model as everybody has it."""
    places = {COORDINATOR: site.trial.run, **{name: site.trial.party(name) for name in site.trial.parties}}
    found = {name: [*place.rglob("release/model.safetensors")] for name, place in places.items()}
    return {name: paths[0].read_bytes() for name, paths in found.items() if paths}


def rounds(site: Site) -> list[tuple[int, str, int, tuple[str, ...]]]:
    """Which questions were opened over whom: serial numbers, names, numbers and survivors."""
    with closing(CoordinatorStore(site.trial.run / "coordinator")) as store:
        rows = store.rows("SELECT serial, question, number, survivors FROM rounds ORDER BY serial")
    return [(serial, question, number, tuple(names.split())) for serial, question, number, names in rows]


def charges(site: Site) -> Iterator[tuple[str, Mapping[str, int]]]:
    """How often each party's ledger was charged for each question."""
    for name in site.trial.parties:
        found: dict[str, int] = {}
        for path in sorted(site.trial.party(name).rglob("*.ledger")):
            with Ledger.read(path) as ledger:
                for entry in ledger.entries():
                    if entry.content["kind"] == "spent":
                        about = entry.content["about"]
                        key = f"{about['question']} {about['serial']}"
                        found[key] = found.get(key, 0) + 1
        yield name, found


def result(site: Site) -> Mapping[str, object]:
    """What the coordinator says of the run."""
    return dict(json.loads((site.trial.run / "result.json").read_text("utf-8")))
