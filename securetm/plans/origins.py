"""Where everything that a plan's training starts from comes from, and what a privacy budget refuses to start from.

A budget bounds what its own run tells about documents. What the run starts from has told things before: it must be public with
a reason, or paid for in the same unit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from securetm.contracts import Budget
from securetm.contracts.origin import Origin, OriginKind, PaidEntry, StartingInput
from securetm.corpus.languages import ENGLISH_CODE
from securetm.corpus.text_embeddings import is_usual
from securetm.corpus.word_vectors import GLOVE, SENTENCE, VectorSource
from securetm.data_classes import dataclass
from securetm.errors import BadSetting
from securetm.models.stored_model import StoredModel
from securetm.plans.schema import MODEL_ENDING, Plan
from securetm.settings import digest, require
from securetm.wording import listed, upward

_MODEL = "model.safetensors"
_MODELS = (_MODEL, f"release/{_MODEL}", f"../release/{_MODEL}")  # of a run, as seen from where its list of words may lie
_SENTENCES = "the sentence model all-MiniLM-L6-v2, trained on public texts by its publishers"
PUBLIC_SOURCES = {
    "words": "the frequent words of general texts (package wordfreq: subtitles, news, encyclopedias, books, web pages)",
    "stop words": "a list of function words that stands in securetm's own code",
    GLOVE: "the vectors GloVe 6B, trained on Wikipedia 2014 and Gigaword 5 by their publishers",
    SENTENCE: _SENTENCES,
}
_SECTIONS = {
    "continue_from": ("[training]", "continue_from"),
    "vocabulary": ("[vocabulary]", "file"),
    "stop_words": ("[tokeniser]", "stop_words"),
    "vectors": ("[training]", "vectors"),
    "embeddings": ("[embeddings]", "model"),
}
_SAYS_NOTHING = "no origin stands in it, and the plan gives no reason why it is public"


@dataclass(frozen=True)
class StartingPlan:
    """What a plan names, and what was found of it when the plan was read."""

    plan: Plan
    vectors: VectorSource | None
    reads_embeddings: bool
    has_list: bool = True  # whether the public list is that of the plan, and not another one in its place

    def inputs(self) -> tuple[StartingInput, ...]:
        """Everything that the training starts from, each with its origin. A reason about anything else is refused."""
        found = [*self._earlier(), *self._list(), *self._stop_words(), *self._vectors(), *self._embeddings()]
        for name, reason in self.plan.origins.given().items():
            declared = any(one.setting == name and one.declared for one in found)
            own = next((one.origin.in_words() for one in found if one.setting == name), "")
            known, nothing = (
                f"cannot be given, because an origin is known: {own}",
                "is about nothing that this plan starts from",
            )
            problem = known if own else nothing
            instead = f"leave out --public {name}=…, or {name} in [origins]"
            require(declared or not self.has_list, "[origins]", name, reason, problem, instead=instead)
        return tuple(found)

    def _earlier(self) -> list[StartingInput]:
        path = self.plan.training.continue_from
        return [self._of_file("continue_from", Path(path), StoredModel.open(Path(path)).origin)] if path else []

    def _list(self) -> list[StartingInput]:
        choice = self.plan.vocabulary
        if not self.has_list or not choice.file or choice.file == self.plan.training.continue_from:
            return []
        if choice.language is not None:
            return [StartingInput("vocabulary", choice.file, Origin.public(PUBLIC_SOURCES["words"]))]
        path = Path(choice.file)
        return [self._of_file("vocabulary", path, _origin_of_list(path))]

    def _stop_words(self) -> list[StartingInput]:
        named = self.plan.tokeniser.stop_words
        if named == "none":
            return []
        if (code := self.plan.tokeniser.language) is not None:
            source = PUBLIC_SOURCES["stop words" if code == ENGLISH_CODE else "words"]
            return [StartingInput("stop_words", named, Origin.public(source))]
        return [self._of_file("stop_words", Path(named), None)]

    def _vectors(self) -> list[StartingInput]:
        if self.vectors is None:
            return []
        if (reason := PUBLIC_SOURCES.get(self.vectors.name)) is not None:
            return [StartingInput("vectors", self.vectors.name, Origin.public(reason))]
        return [self._judged("vectors", self.vectors.name, None, self.plan.training.vectors_digest)]

    def _embeddings(self) -> list[StartingInput]:
        chosen, column = self.plan.embeddings, self.plan.corpus.embedding
        if not self.reads_embeddings:
            return []
        if column or not chosen.model:
            named = f"the column {column}" if column else "the embeddings that documents bring"
            return [self._judged("embeddings", named, None, "")]
        if is_usual(chosen.model):
            return [StartingInput("embeddings", chosen.model, Origin.public(_SENTENCES))]
        return [self._judged("embeddings", chosen.model, None, chosen.digest)]

    def _of_file(self, setting: str, path: Path, origin: Origin | None) -> StartingInput:
        return self._judged(setting, str(path), origin, hashlib.sha256(path.read_bytes()).hexdigest())

    def _judged(self, setting: str, shown: str, own: Origin | None, found: str) -> StartingInput:
        """The input with its own origin, or with the plan's reason where it has none."""
        reason = self.plan.origins.given().get(setting, "")
        if own is not None:
            return StartingInput(setting, shown, own, digest=found)
        if reason:
            return StartingInput(setting, shown, Origin.public(reason), declared=True, digest=found)
        return StartingInput(setting, shown, Origin.unbounded(_SAYS_NOTHING), digest=found)


def _origin_of_list(path: Path) -> Origin | None:
    """The origin of a model whose words are taken, or of the model that a run's list of words lies beside."""
    if path.suffix == MODEL_ENDING:
        return StoredModel.open(path).origin
    beside = next((found for name in _MODELS if (found := path.parent / name).is_file()), None)
    stored = None if beside is None else StoredModel.open(beside)
    if stored is not None and path.read_bytes().decode("utf-8", "replace").split("\n") == list(stored.words):
        return stored.origin
    return None


def check_inputs(inputs: Sequence[StartingInput], budget: Budget | None, profile: str) -> None:
    """Refuses to spend a budget on a run that starts from what no budget bounds."""
    if budget is None:
        return
    for one in inputs:
        if one.origin.kind is OriginKind.UNBOUNDED:
            claim = f"so the epsilon = {upward(budget.epsilon)} of {profile} would bound nothing"
            raise _refused(one, f"may tell anything about documents ({one.origin.reason}), {claim}", _way_out(one))


def check_units(inputs: Sequence[StartingInput], budget: Budget | None) -> None:
    """Refuses to add what was paid for one unit to what is paid for another."""
    for one in inputs if budget is not None else ():
        assert budget is not None
        if others := tuple(sorted(unit.value for unit in one.origin.units - {budget.unit})):
            problem = f"is paid for by {listed(others)}, and this run by {budget.unit.value}: the two do not add up"
            instead = (
                f"go on from a run whose budget is each {budget.unit.value}'s, or give this run the unit of the earlier one"
            )
            raise _refused(one, problem, instead)


def entries_of(inputs: Sequence[StartingInput]) -> tuple[PaidEntry, ...]:
    """What the runs spent that the inputs were learned in, each run once."""
    entries = [entry for one in inputs for entry in one.origin.entries]
    return Origin.paid(entries).entries if entries else ()


def accepted_as(one: StartingInput) -> str:
    """The digest by which a party accepts an input: of what it is, and of where it is said to come from."""
    return digest([one.setting, one.digest, one.origin.as_text()]).hex()


def _refused(one: StartingInput, problem: str, instead: str) -> BadSetting:
    where, name = _SECTIONS[one.setting]
    return BadSetting(where, name, repr(one.shown), problem, instead=instead)


def _way_out(one: StartingInput) -> str:
    if one.origin.reason == _SAYS_NOTHING:
        reason = f'--public {one.setting}="WHY", or {one.setting} = "WHY" under [origins] of the plan'
        return f"if no document of a party made it, say which documents did: {reason}; else leave it out"
    return (
        "train what it comes from under a budget too, leave it out, or take a profile without a budget (--profile masked), "
        "whose model stays unbounded"
    )
