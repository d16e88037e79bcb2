"""A federation that exchanges letters, pass by pass, in this process. Each pass opens everything anew. It holds no tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securetm.federation.coordinator.serving import CoordinatorFiles
from securetm.federation.courier.one_pass import Pass, pass_of_coordinator, pass_of_party
from securetm.federation.courier.places import LocalFolder, Place
from securetm.federation.folder import begin, check_all
from securetm.federation.party.joining import Joining
from securetm.federation.party.status import JoinStatus
from securetm.federation.simulation.simulation import execute
from securetm.plans.recommend import whole_plan
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from ..federation.joined import NAMES, Organisations

MOST_PASSES = 200
MODEL = "model.safetensors"


@dataclass
class ByCourier:
    """Five organisations and their folder of letters; any of them may see it through a place of its own."""

    organisations: Organisations
    letters: Path
    place_of: Callable[[str], Place] | None = None
    passes: dict[str, int] = field(default_factory=dict)  # in which a letter was taken in
    said: dict[str, Pass] = field(default_factory=dict)

    @classmethod
    def of(cls, keys: Path, folder: Path, plan: str) -> ByCourier:
        made = cls(Organisations.of(keys, folder / "organisations", plan), folder / "letters")
        made.letters.mkdir()
        own = "" if "[coordinator]" in plan else "[coordinator]\n"
        (made.coordinator / "plan.toml").write_text(f'{plan}{own}keys = "home/keys"\n', "utf-8")
        return made

    @property
    def coordinator(self) -> Path:
        return self.organisations.folder / "coordinator"

    @property
    def run(self) -> Path:
        return self.coordinator / "run"

    def place(self, name: str) -> Place:
        return self.place_of(name) if self.place_of else LocalFolder(self.letters)

    def prepared(self, name: str) -> Joining:
        return self.organisations.prepared(name, connects=False)

    def files(self) -> tuple[Plan, CoordinatorFiles]:
        plan = whole_plan(self.coordinator / "plan.toml", {})
        return plan, CoordinatorFiles.read(plan.coordinator, self.coordinator, lambda _: None, connects=False)

    def party(self, name: str) -> Pass:
        status = JoinStatus(name, "trial", 2)
        return self._made(name, pass_of_party(self.prepared(name), self.place(name), status))

    def serve(self) -> Pass:
        plan, files = self.files()
        return self._made("coordinator", pass_of_coordinator(plan, self.run, files, self.place("coordinator"), "securetm post"))

    def _made(self, name: str, made: Pass) -> Pass:
        self.passes[name] = self.passes.get(name, 0) + made.took
        self.said[name] = made
        return made

    def to_the_end(
        self, between: Callable[[], None] = lambda: None, away: Callable[[int], Collection[str]] = lambda _: ()
    ) -> Mapping[str, Any]:
        """Passes of everybody who is there in turn, until all have the model. Returns what the coordinator ended with."""
        for turn in range(MOST_PASSES):
            self.serve()
            between()
            for name in (name for name in NAMES if name not in away(turn)):
                self.party(name)
                between()
            if all(name in self.said and self.said[name].ended is not None for name in ("coordinator", *NAMES)):
                ended = self.said["coordinator"].ended
                assert ended is not None
                check_all(self.run)  # of which a statement can be made
                return ended
        raise AssertionError(self.said)

    def simulated(self) -> bytes:
        """The model that one process learns from the same documents."""
        return (self._simulation() / "release" / MODEL).read_bytes()

    def simulated_at_parties(self) -> set[bytes]:
        """The same, as each party of that process has it."""
        return {path.read_bytes() for path in (self._simulation() / "parties").rglob(MODEL)}

    def models(self) -> set[bytes]:
        """Every copy of the model that a member has, and the coordinator, where it sees one."""
        places = (self.run, *(self.organisations.home(name) for name in NAMES))
        found = [path.read_bytes() for place in places for path in place.rglob(MODEL)]
        seen = self.organisations.prepared("numpy").agreement.profile.aggregation.opened_by == "coordinator"
        assert len(found) == seen + len(NAMES)
        return set(found)

    def _simulation(self) -> Path:
        corpora = {name: self.organisations.prepared(name).corpus for name in NAMES}
        plan, folder = whole_plan(self.coordinator / "plan.toml", {}), self.organisations.folder / "simulated"
        execute(begin(folder, plan, corpora), Unwatched())
        return folder
