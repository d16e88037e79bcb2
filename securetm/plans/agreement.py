"""What a role agreed to when it started: the plan, and everything that the plan names in a file or in a registry.

All of it is read once, so that editing a file during a run changes nothing in the run. It runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from securetm.contracts import Answer, Array, Budget, Profile, State, TopicModel, Unit
from securetm.contracts.origin import Origin, StartingInput
from securetm.corpus.languages import ENGLISH_CODE
from securetm.corpus.public_words import public_shares
from securetm.corpus.tokeniser import without_usual
from securetm.corpus.word_vectors import VectorSource, installed_vectors
from securetm.data_classes import dataclass, replace
from securetm.errors import Mistake
from securetm.models.moments import TopicsBefore
from securetm.models.public_knowledge import PublicKnowledge, public_knowledge
from securetm.models.stored_model import StoredModel
from securetm.plans.origins import StartingPlan, check_inputs
from securetm.plans.profiles import ProfileFile, make_model
from securetm.plans.rules import noise_of_start
from securetm.plans.schema import MOMENTS, NO_VECTORS, PUBLIC, Plan
from securetm.settings import digest, require


@dataclass(frozen=True)
class EarlierModel:
    """A finished model that a training goes on from: the words and the topics that it had."""

    model: TopicModel
    state: State
    vocabulary: tuple[str, ...]
    origin: Origin | None = None  # as its file says

    @cached_property
    def digest(self) -> bytes:
        """The hash of what every party of the earlier training has: its public state and its words."""
        public = self.model.shared(self.state)
        arrays = {name: [array.dtype.str, list(array.shape), array.tobytes().hex()] for name, array in public.items()}
        return digest([self.model.name, list(self.vocabulary), dict(sorted(arrays.items()))])


@dataclass(frozen=True)
class Agreement:
    """The plan of a run with its profile, its model and its public lists."""

    plan: Plan
    file: ProfileFile
    profile: Profile
    model: TopicModel
    words: tuple[str, ...] | None  # of the public list; None where the parties unite their own words
    stop_words: str | tuple[str, ...]
    earlier: EarlierModel | None = None  # that the training goes on from
    base_words: tuple[str, ...] = ()  # of a public list to which the parties add their own
    inputs: tuple[StartingInput, ...] = ()  # everything that the training starts from, with its origin

    def start(self, vocabulary: Sequence[str], frequencies: Array | None = None) -> State:
        """Returns the state that the training starts from. The plan's seed decides it, the earlier model or public vectors.

        `frequencies` of the words take the place of those in general texts, where opened sums told them.
        """
        rng = np.random.default_rng(self.plan.seed)
        if self.earlier is None:
            public = self.begun_with(vocabulary, frequencies)
            return self.model.start(vocabulary, rng) if public is None else self.model.started(vocabulary, public, rng)
        begun = self.model.going_on(self.earlier.state, vocabulary, rng)
        return self.model.weighing_earlier(begun, self.plan.training.earlier_weight)

    def start_after(self, vocabulary: Sequence[str], answer: Answer, frequencies: Array | None = None) -> State:
        """Returns the state that the training starts from, at the topics that the answer to the question of moments shows."""
        found = self.topics_before.found(vocabulary, answer, self.begun_with(vocabulary, frequencies))
        return self.model.started(vocabulary, found, np.random.default_rng(self.plan.seed))

    @property
    def topics_before(self) -> TopicsBefore:
        """The question of moments before the training: it asks for as many topics as the model has."""
        return TopicsBefore(self.model.most_shown_topics)

    @property
    def noise_of_start(self) -> float:
        """The noise multiplier of that question: it spends the plan's share of the budget. 0 where there is none."""
        budget = self.budget
        return noise_of_start(budget.epsilon, budget.delta, self.plan.training.start_share) if budget else 0.0

    @cached_property
    def vectors(self) -> VectorSource | None:
        """The word vectors at whose topics the training begins; None where it begins without any.

        A plan that does not say how to begin does so at public topics where noise would drown others, if a package of vectors
        is here. The parties need not agree on that: the coordinator alone makes the first state, and it reveals nothing.
        """
        named = self.plan.training.vectors
        if named == NO_VECTORS:
            return None
        if self.plan.training.start == PUBLIC or named:
            return VectorSource(named)
        return installed_vectors() if self.begins_public_by_default else None

    @property
    def begins_public_by_default(self) -> bool:
        """Whether the plan leaves open how to begin, and public topics are what it begins at if vectors are here."""
        chosen = self.plan.training
        is_open = chosen.start in ("", MOMENTS) and not chosen.vectors and self.earlier is None
        is_open &= self.plan.language in (None, ENGLISH_CODE)  # of which the installed vectors are
        return is_open and begins_public(self.profile) and self.model.starts_public

    def begun_with(self, vocabulary: Sequence[str], frequencies: Array | None = None) -> PublicKnowledge | None:
        """What the training begins with. Vectors that know no word are refused if the plan names them, and else left out."""
        public = self.public(vocabulary, frequencies)
        if public is None or self.vectors is None or public.vectors.any():
            return public
        if self.plan.training.vectors:
            raise Mistake(
                "the word vectors {name!r} know none of the {words:word|words}, so there is no public topic to begin at",
                hint="name vectors of the documents' language, with words in small letters; or begin without any: "
                "--start plain",
                name=self.vectors.shown,
                words=len(vocabulary),
            )
        return None

    def public(self, vocabulary: Sequence[str], frequencies: Array | None = None) -> PublicKnowledge | None:
        """What is known of these words from the vectors that were agreed on; None where the training begins without any."""
        if self.vectors is None:
            return None
        self.vectors.check(self.plan.training.vectors_digest)
        rows = self.vectors.read(vocabulary).matrix(vocabulary)
        usual = self.frequencies(vocabulary) if frequencies is None else frequencies
        return public_knowledge(rows, self.model.most_shown_topics, usual)

    def frequencies(self, vocabulary: Sequence[str]) -> Array | None:
        """The words' shares in general texts of the language of the stop words or of the public list; None of another one.

        A word that the language's list does not know is half as frequent as the rarest that it knows.
        """
        code = self.plan.language
        shares = public_shares(vocabulary, code, self.plan.tokeniser.make()) if code else np.zeros(1)
        if not shares.any():
            return None
        filled = np.where(shares > 0, shares, shares[shares > 0].min() / 2)
        return np.asarray(filled / filled.sum())

    @property
    def budget(self) -> Budget | None:
        """The privacy budget of each party; None where nothing is differentially private."""
        return self.profile.budget

    @property
    def unit(self) -> Unit:
        """Whom the budget protects: a document, a person or a word."""
        return self.budget.unit if self.budget else Unit.DOCUMENT

    @property
    def longest_list(self) -> tuple[str, ...]:
        """The run's list of words; where the parties have yet to find theirs, made-up ones instead, as many as may be."""
        found = tuple(f"word{n}" for n in range(self.plan.vocabulary.max_words))
        return self.words or (*self.base_words, *found)

    @cached_property
    def digest(self) -> bytes:
        """The hash of all that the parties agree on: not where documents come from, nor how a coordinator is operated.

        Of files and models that the plan names, what they hold counts, and not where they lie.
        """
        public = {name: value for name, value in self.plan.tables().items() if name not in ("corpus", "coordinator")}
        public["training"]["vectors"] = ""  # their digest stands beside it
        public["training"]["continue_from"] = self.earlier.digest.hex() if self.earlier else ""
        read = {**public["embeddings"], "model": bool(self.plan.embeddings.model)}  # the weights' digest stands beside it
        public["embeddings"] = read if self.model.embedding_size else {}
        public["vocabulary"]["file"] = list(self.words or self.base_words)
        if not self.plan.vocabulary.told_at_the_end:  # plans of before have no such setting
            del public["vocabulary"]["told_at_the_end"]
        public["tokeniser"] = without_usual(public["tokeniser"])
        public["tokeniser"]["stop_words"] = list(self.stop_words) if isinstance(self.stop_words, tuple) else self.stop_words
        return digest(public)

    def with_privacy(self, **settings: Any) -> Self:
        """The same agreement with other settings of its [privacy]; no file is read again."""
        plan = replace(self.plan, privacy=replace(self.plan.privacy, **settings))
        return replace(self, plan=plan, profile=plan.profile_in(self.file))


def begins_public(profile: Profile) -> bool:
    """Whether a plan under this profile that leaves open how to begin does so at public topics, if it can."""
    budget = profile.budget
    return budget is not None and budget.unit is not Unit.WORD and profile.aggregation.opened_by == "coordinator"


def agree(plan: Plan, *, listed: tuple[str, ...] | None = None) -> Agreement:
    """Reads everything that this plan names; `listed` stands in for a public list whose file need not be there.

    A budget is refused where the training would start from what may tell anything about documents.
    """
    file = ProfileFile.read(plan.profile)
    words, base = listed or plan.vocabulary.public_words(plan.tokeniser.make()), tuple[str, ...]()
    if listed is None and plan.vocabulary.source != "file":  # the parties find words together, beside these
        words, base = None, words or ()
    stop_words = plan.tokeniser.listed()
    model = make_model(plan.model.name, plan.model.settings)
    earlier = _earlier(plan, model) if plan.training.continue_from else None
    made = Agreement(plan, file, plan.profile_in(file), model, words, stop_words, earlier, base)
    inputs = StartingPlan(plan, made.vectors, bool(model.embedding_size), has_list=listed is None).inputs()
    check_inputs(inputs, made.budget, made.profile.name)
    return replace(made, inputs=inputs)


def _earlier(plan: Plan, model: TopicModel) -> EarlierModel:
    """Reads the model to go on from, if this plan's model can: it is of the same kind and size, with as many topics or more."""
    path = plan.training.continue_from

    def kind_of(name: str) -> type[Any]:
        problem = f"cannot go on from {path}, which is of the model {name}"
        require(name == model.name, "[model]", "name", plan.model.name, problem)
        return type(model)

    stored = StoredModel.open(Path(path))
    earlier = EarlierModel(*stored.model(kind_of, plan.model.settings.get("module", "")), stored.origin)
    rng, words = np.random.default_rng(plan.seed), earlier.vocabulary
    had, has = (len(one.topics(state)) for one, state in ((earlier.model, earlier.state), (model, model.start(words, rng))))
    problem = f"has {had} topics, and the plan's model {has}: set model.n_topics to {had}" + (" or more" * model.gains_topics)
    require(has == had or (has > had and model.gains_topics), "[training]", "continue_from", path, problem)
    problem = "has other sizes than the plan's model: give the plan the settings that the earlier run had"
    fits = model.fits(model.going_on(earlier.state, words, rng), len(words))
    require(fits, "[training]", "continue_from", path, problem)
    return earlier
