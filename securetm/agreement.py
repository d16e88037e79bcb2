"""What a role agreed to when it started: the plan, and everything that the plan names in a file or in a registry.

All of it is read once, so that editing a file during a run changes nothing in the run. It runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from securetm.contracts import Budget, Profile, TopicModel, Unit
from securetm.plans import FederationChoice, Plan
from securetm.profiles import ProfileFile, make_model
from securetm.toml_settings import digest


@dataclass(frozen=True)
class Agreement:
    """The plan of a run with its profile, its model and its public lists."""

    plan: Plan
    file: ProfileFile
    profile: Profile
    model: TopicModel
    words: tuple[str, ...] | None  # of the public list; None where the parties unite their own words
    stop_words: str | tuple[str, ...]

    @property
    def budget(self) -> Budget | None:
        """The privacy budget of each party; None where nothing is differentially private."""
        return self.profile.budget

    @property
    def unit(self) -> Unit:
        """Whom the budget protects: a document, a person or a word."""
        return self.budget.unit if self.budget else Unit.DOCUMENT

    @cached_property
    def digest(self) -> bytes:
        """The hash of all that the parties agree on: not where documents come from, nor how a coordinator is operated."""
        public = {name: value for name, value in self.plan.tables().items() if name not in ("corpus", "coordinator")}
        if self.plan.federation == FederationChoice():  # a plan that says nothing of it keeps the hash that it had
            del public["federation"]
        if not self.plan.training.epochs:
            del public["training"]["epochs"]
        if self.model.embedding_size:
            public["embeddings"]["model"] = bool(self.plan.embeddings.model)  # the weights count, not where they lie
        else:  # then the plan keeps the hash that it had
            del public["embeddings"]
        public["vocabulary"]["file"] = list(self.words) if self.words else ""  # the words count, not where the file lies
        public["tokeniser"]["stop_words"] = self.stop_words if isinstance(self.stop_words, str) else list(self.stop_words)
        return digest(public)

    def with_privacy(self, **settings: Any) -> Self:
        """The same agreement with other settings of its [privacy]; no file is read again."""
        plan = replace(self.plan, privacy=replace(self.plan.privacy, **settings))
        return replace(self, plan=plan, profile=plan.profile_in(self.file))


def agree(plan: Plan, *, listed: tuple[str, ...] | None = None) -> Agreement:
    """Reads everything that this plan names; `listed` stands in for a public list whose file need not be there."""
    file = ProfileFile.read(plan.profile)
    words = listed or plan.vocabulary.public_words()
    stop_words = plan.tokeniser.listed()
    model = make_model(plan.model.name, plan.model.settings)
    return Agreement(plan, file, plan.profile_in(file), model, words, stop_words)
