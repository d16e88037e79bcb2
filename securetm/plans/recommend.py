"""What is recommended where a plan leaves something open: the one place that chooses settings, and says why.

A short plan, or a command line, is a request. `recommend` makes a whole plan of it, from its profile, its model, public numbers
and the fitted rules in `rules.json`. It reads no document, and of a whole plan it changes nothing. Roles of a federation that
start from the same request come to the same plan, since every choice is made of what stands in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from securetm.contracts import Profile, TopicModel, Unit
from securetm.corpus.languages import ENGLISH_CODE, language_code, language_name
from securetm.corpus.text_embeddings import USUAL_DIGEST, USUAL_SIZE, find_sentence_model, is_usual
from securetm.corpus.tokeniser import LATER, RECOMMENDED
from securetm.corpus.word_vectors import GLOVE, SENTENCE, VectorSource, installed_vectors
from securetm.data_classes import dataclass, field
from securetm.models.questions.words import MOST_PAIRED
from securetm.plans.agreement import begins_public
from securetm.plans.profiles import ProfileFile, make_model, model_class, noise_of_whole_budget
from securetm.plans.reading import Request, check_completed, checked, hidden_documents, idle_in, read_plan
from securetm.plans.rules import (
    CENTRES_RULE,
    SHARE_RULE,
    START_RULE,
    WORDS_RULE,
    asks_first,
    rounds_for,
    rounds_of_centres,
    rounds_rule,
    totals_for,
    totals_rule,
    words_for,
)
from securetm.plans.schema import (
    MOMENTS,
    NO_VECTORS,
    PLAIN,
    PUBLIC,
    USUAL_LANGUAGE,
    WITH_PRIVATE,
    Plan,
    hides_documents,
)
from securetm.settings import placed, require

MOST_ROUNDS_OF_EPOCHS = 10_000  # that parties answer where a plan gives epochs, and no number of rounds
_OLDER_PLANS_SAY = frozenset(("tokeniser.lower", "tokeniser.numbers", "tokeniser.longest"))
_NO_WORDS = {
    "markup": "entities and tags of HTML, and links, tell no subject",
    "quotes": "what a mail or a post quotes is another document's",
}
_OF_THE_START = ("start", "start_share", "vectors", "vectors_digest")
_NOT_TO_GO_ON = tuple(f"training.{name}" for name in ("continue_from", "earlier_weight", *_OF_THE_START))


@dataclass(frozen=True)
class Recommendation:
    """A whole plan, and by the names of its settings why each was chosen that the request left open."""

    plan: Plan
    why: Mapping[str, str] = field(default_factory=dict)
    given: frozenset[str] = frozenset()  # the names of the settings that the request gives

    @property
    def language_is_open(self) -> bool:
        """Whether the request names no language: neither that of its stop words nor that of a public list."""
        listed = self.plan.vocabulary.language is not None and "vocabulary.file" in self.given
        return "tokeniser.stop_words" not in self.given and not listed


def whole_plan(path: Path | None, overrides: Mapping[str, Any]) -> Plan:
    """The plan in a file (or the default plan), with overrides, and with all that these leave open."""
    return recommended_for(path, overrides).plan


def recommended_for(path: Path | None, overrides: Mapping[str, Any]) -> Recommendation:
    """What is recommended for the request in a file and on the command line."""
    return recommend(_dealt_out_to_all(read_plan(path, overrides)))


def plan_from_tables(tables: Mapping[str, Any], where: str) -> Plan:
    """The whole plan of a request in tables, as they stand in TOML."""
    return recommended(tables, where).plan


def recommended(tables: Mapping[str, Any], where: str) -> Recommendation:
    """What is recommended for a request in tables."""
    return recommend(checked(tables, where))


def recommend(request: Request) -> Recommendation:
    """The plan with every setting that the request leaves open; or a refusal of what is not sound."""
    with placed(request.path, request.elsewhere):
        choosing = _Choosing(request)
        choosing.choose()
        check_completed(choosing.plan, choosing.profile, choosing.model)
    return Recommendation(choosing.plan, choosing.why, request.given)


def _dealt_out_to_all(request: Request) -> Request:
    """A simulation whose plan says only how many parties take part deals its documents out to as many."""
    corpus, parties = request.plan.corpus, request.plan.federation.parties
    if not parties or corpus.partition == "column" or "corpus.parties" in request.given:
        return request
    return replace(request, plan=replace(request.plan, corpus=replace(corpus, parties=parties)))


def _usual_settings(name: str, settings: Mapping[str, Any], *, hides: bool) -> Mapping[str, Any]:
    """The settings of a model in a federation that differ from those on one machine."""
    kind = model_class(name, settings)
    return {**kind.federated_defaults, **(kind.budget_defaults if hides else {})} if kind else {}


class _Choosing:
    """The settings of one plan, chosen in the order in which they follow from each other."""

    def __init__(self, request: Request) -> None:
        self.plan, self.given, self.why = request.plan, request.given, dict[str, str]()
        budget = request.file.profile().budget
        if budget is not None:
            named = Unit.PERSON.value if self.plan.corpus.person else ""
            unit = Unit.WORD.value if budget.unit is Unit.WORD else self.plan.privacy.unit or named
            self._set(
                "privacy", "the budget is each single word's" if unit == "word" else "the corpus names persons", unit=unit
            )
        self.profile: Profile = self.plan.profile_in(request.file)
        self.hides = hides_documents(self.profile.budget)
        self._usual_model()
        self.model: TopicModel = make_model(self.plan.model.name, self.plan.model.settings)
        self.noise = noise_of_whole_budget(self.profile, self.plan.federation.in_a_round) if self.hides else 0.0

    def _usual_model(self) -> None:
        """The model's settings in a federation, where the request does not say them."""
        name, settings = self.plan.model.name, self.plan.model.settings
        usual = {
            one: value for one, value in _usual_settings(name, settings, hides=self.hides).items() if self._open(f"model.{one}")
        }
        self._set("model", "", settings={**settings, **usual})
        self.why |= {f"model.{one}": f"of {name} in a federation" for one in usual}
        self.why |= {"model.name": "nobody named one"} if self._open("model.name") else {}

    def choose(self) -> None:
        """Chooses whatever is open."""
        self._tokens()
        self._words()
        self._sentence_model()
        self._source()
        if self.profile.budget is not None and self.plan.model.settings.get("device") == "auto":
            self._set_model("a budget needs arithmetic in a fixed order", device="cpu")
        self._start()
        self._length()
        self._totals()
        self._vectors()
        self._epsilon()

    def _open(self, name: str) -> bool:
        return name not in self.given

    def _set(self, section: str, why: str, **values: Any) -> None:
        """Sets settings of a section, and notes why those that differ were chosen."""
        before = getattr(self.plan, section)
        self.plan = replace(self.plan, **{section: replace(before, **values)})
        self.why |= {f"{section}.{name}": why for name, value in values.items() if getattr(before, name) != value}

    def _set_model(self, why: str, **values: Any) -> None:
        before = self.plan.model.settings
        self._set("model", "", settings={**before, **values})
        self.why |= {f"model.{name}": why for name, value in values.items() if before.get(name) != value}

    @property
    def _topics(self) -> int:
        return int(self.plan.model.settings["n_topics"])

    @property
    def _asked_first(self) -> float:
        """The share of a budget that pays for the question before the training; 0 where none is asked."""
        training = self.plan.training
        return (training.start_share or SHARE_RULE.value["share"]) if training.start == MOMENTS else 0.0

    @property
    def _left(self) -> float:
        """The noise of a single round that has what the question before the training leaves of the budget."""
        return self.noise / math.sqrt(1.0 - self._asked_first)

    def _tokens(self) -> None:
        """Markup and quotes are no words, and the stop words are those of the public list's language.

        A plan that says all that older plans do about words is one of these, and keeps them.
        """
        if not _OLDER_PLANS_SAY.issubset(self.given):
            for name, value in RECOMMENDED.items():
                if self._open(f"tokeniser.{name}"):
                    self._set("tokeniser", _NO_WORDS[name], **{name: value})
        listed = language_code(self.plan.vocabulary.file.removesuffix(WITH_PRIVATE))
        if listed not in (None, ENGLISH_CODE) and self._open("tokeniser.stop_words"):
            self._set("tokeniser", "the language of the public list", stop_words=listed)

    def _words(self) -> None:
        """As many words as the rule says, where a budget leaves them open. A list in a file is kept whole."""
        own, units = self.plan.vocabulary, self.plan.training.units
        whole = bool(own.file) and own.language is None and not own.file.endswith(WITH_PRIVATE)
        if self._open("vocabulary.max_words") and not whole and units and self.model.budget_rounds and self.hides:
            self._set("vocabulary", WORDS_RULE.why, max_words=words_for(units, self.noise))

    def _sentence_model(self) -> None:
        """The digest of the sentence model's weights and the size of its embeddings, where the model reads what it makes."""
        chosen, read = self.plan.embeddings, self.model.embedding_size
        if not read or not chosen.model or self.plan.corpus.embedding:
            return
        asked = 0 if self._open("model.embedding_size") else read
        if is_usual(chosen.model):
            weights, size = USUAL_DIGEST, USUAL_SIZE
        elif chosen.digest and asked:  # a role that embeds nothing need not have the model
            weights, size = chosen.digest, asked
        else:
            found = find_sentence_model(chosen.model)
            weights, size = found.digest, found.size
        problem = f"is not the size of embeddings by {chosen.model}, which is {size}"
        require(asked in (0, size), f"[model] {self.plan.model.name}", "embedding_size", asked, problem)
        self._set("embeddings", f"of the weights of {chosen.model}", digest=chosen.digest or weights)
        self._set_model(f"of the embeddings by {chosen.model}", embedding_size=size)

    def _source(self) -> None:
        """The source of the words: where none is named, that of the list, or else the first that the profile allows.

        A profile that takes public lists only has the frequent words of a language where the plan names no list.
        """
        given, allowed = self.plan.vocabulary, self.profile.vocabularies
        if (earlier := self.plan.training.continue_from) and given.source in ("", "file") and given.file in ("", earlier):
            given = replace(given, source="file", file=earlier)
        listed, both = given.file.removesuffix(WITH_PRIVATE), given.file.endswith(WITH_PRIVATE)
        source = given.source or ("joint" if both else "file" if listed else allowed[0])
        problem = f"adds words of the parties to the list, and the source is {source}: leave the source out"
        require(source == "joint" or not both, "[vocabulary]", "file", given.file, problem)
        problem = f"adds words of the parties, which profile {self.profile.name!r} does not take: leave out {WITH_PRIVATE}"
        require(source in allowed or not both, "[vocabulary]", "file", given.file, problem)
        why = "as the list says" if listed else f"{self.profile.name} allows {', '.join(allowed)}"
        spoken = self.plan.tokeniser.language
        usual = spoken if spoken not in (None, ENGLISH_CODE) else USUAL_LANGUAGE
        self._set("vocabulary", why, source=source, file=listed or (usual if source == "file" else ""))

    def _start(self) -> None:
        """Topics of pairs of words, where the rule for short texts asks for them and the plan leaves the start open.

        A plain start in another language than English, of which no vectors are installed.
        """
        training, model, words = self.plan.training, self.model, self.plan.most_words
        said = training.start or training.vectors or training.continue_from
        told = training.documents and training.document_length and self.plan.privacy.unit != Unit.PERSON.value
        by_rule = model.short_by_pairs and model.budget_rounds and model.starts_public and not model.needs_public
        can_ask = self.hides and self.profile.aggregation.opened_by == "coordinator" and words <= MOST_PAIRED
        if said:
            return
        first = bool(told and by_rule and can_ask)
        if first and asks_first(training.documents, training.document_length, self._topics, words, self.noise):
            self._set("training", START_RULE.why, start=MOMENTS)
        elif self._foreign and model.starts_public and begins_public(self.profile) and self._open("training.rounds"):
            self._set("training", "the word vectors that are installed are English", start=PLAIN)

    @property
    def _foreign(self) -> bool:
        """Whether the plan names another language than English."""
        return self.plan.language not in (None, ENGLISH_CODE)

    def _length(self) -> None:
        """As many epochs or rounds as the model needs, where the plan does not say."""
        training, model, name = self.plan.training, self.model, self.plan.model.name
        if model.most_rounds:
            self._set("training", f"{name} learns nothing more afterwards", rounds=model.most_rounds, epochs=0.0)
            return
        if not self._open("training.rounds"):
            return
        if self._open("training.epochs") and not hidden_documents(self.plan, self.profile):
            self._set("training", f"what {name} needs in a federation", epochs=model.federated_epochs)
        if self.plan.training.epochs:
            self._set("training", "epochs end the training before", rounds=MOST_ROUNDS_OF_EPOCHS)
            return
        few, why = (model.budget_rounds if self.hides else 0), f"what {name} needs in a federation"
        if few and training.units:
            plain = training.start == PLAIN
            few = rounds_for(training.units, self._topics, self.plan.most_words, self._left, plain=plain)
            why = rounds_rule(plain=plain).why
        elif model.among_embeddings and self.hides and training.units:
            few, why = rounds_of_centres(training.units, self._topics, self._left), CENTRES_RULE.why
        self._set("training", why, rounds=few or model.federated_rounds)

    def _totals(self) -> None:
        """The weight of words' totals by the rule, if documents are told. Topics of pairs of words come with totals."""
        settings, training = self.plan.model.settings, self.plan.training
        if "totals" not in settings or not self._open("model.totals") or not self.hides:
            return
        if not training.units:
            self._set_model("pairs of words tell totals", totals=0.0 if training.start == MOMENTS else settings["totals"])
            return
        case = {"plain": training.start == PLAIN, "after_pairs": self._asked_first > 0}
        weight = totals_for(training.units, self._topics, self.plan.most_words, self._left, **case)
        self._set_model(totals_rule(**case).why, totals=weight)

    def _vectors(self) -> None:
        """The share of the question before the training; the vectors of a public start with their digest.

        A start by moments that names no vectors reads those at the coordinator's place, as one does that is left open.
        """
        training = self.plan.training
        if training.start == MOMENTS:
            share = self._asked_first if self.profile.budget is not None else training.start_share
            named = training.vectors not in ("", NO_VECTORS)
            digest = training.vectors_digest or (VectorSource(training.vectors).digest if named else "")
            self._set("training", SHARE_RULE.why, start_share=share, vectors_digest=digest)
        elif self._begins_public and training.start != PLAIN:
            self._check_language()
            source = VectorSource(training.vectors) if training.vectors else self._usual_vectors()
            digest = training.vectors_digest or source.digest  # a role that begins nothing need not have the vectors
            self._set("training", "the vectors that are here", start=PUBLIC, vectors=source.name, vectors_digest=digest)
        elif self.model.among_embeddings and not training.start and not training.continue_from:
            self._set("training", 'vectors = "minilm" begins at words, if that model made the embeddings', start=PLAIN)

    @property
    def _begins_public(self) -> bool:
        """Whether the training begins at public topics: it says so, or its model needs them, or has words among embeddings."""
        training, model = self.plan.training, self.model
        among = model.among_embeddings and not training.start and not training.continue_from and self._embeds
        return training.start == PUBLIC or bool(training.vectors) or model.needs_public or among

    def _check_language(self) -> None:
        """Refuses to begin in another language than English at the vectors that are installed, which are English."""
        code, own = self.plan.language, self.plan.training
        fine = not self._foreign or bool(own.vectors) or (self.model.among_embeddings and self._embeds)
        problem = f"needs word vectors of {language_name(code or ENGLISH_CODE)}, and those that are installed are English"
        instead = "name a file of vectors (--vectors FILE), or begin plainly (--start plain)"
        require(fine, "[training]", "start", own.start or self.plan.model.name, problem, instead=instead)

    @property
    def _embeds(self) -> bool:
        """Whether a sentence model makes the documents' embeddings, so that it can embed words, too."""
        return bool(self.plan.embeddings.model) and not self.plan.corpus.embedding

    def _usual_vectors(self) -> VectorSource:
        """The vectors that are here; those of the sentence model where words stand among embeddings."""
        if self.model.among_embeddings and self._embeds:
            return VectorSource(SENTENCE if is_usual(self.plan.embeddings.model) else self.plan.embeddings.model)
        return installed_vectors() or VectorSource(GLOVE)

    def _epsilon(self) -> None:
        """The profile's budget as that of all rounds, where their number and the noise are left open: no round is cut off."""
        budget, privacy = self.profile.budget, self.plan.privacy
        few = self.model.budget_rounds or self.model.most_rounds or self.model.among_embeddings
        if budget is None or not self.hides or not few or privacy.epsilon or privacy.noise:
            return
        if self._open("training.rounds"):
            self._set("privacy", f"the budget of {self.profile.name}, for all rounds", epsilon=budget.epsilon)


# ---- plans that follow from a plan --------------------------------------------------------------------------------------


def unusual_settings(plan: Plan) -> dict[str, Any]:
    """The settings of the model that differ from what a plan has that names only the model."""
    settings = plan.model.settings
    hides = hides_documents(ProfileFile.read(plan.profile).profile().budget)
    form = {one: value for one, value in settings.items() if one == "form"}
    made = make_model(plan.model.name, {**form, **_usual_settings(plan.model.name, settings, hides=hides)})
    return {name: value for name, value in settings.items() if getattr(made, name, None) != value}


def settings_to_go_on(plan: Plan, *, own_corpus: bool) -> dict[str, Any]:
    """The settings of a plan, by dotted name, for a run that goes on from its model. Words come with the model."""
    found: dict[str, Any] = {"profile": plan.profile, "seed": plan.seed, "model.name": plan.model.name}
    found |= {f"model.settings.{name}": value for name, value in plan.model.settings.items()}
    found |= {f"tokeniser.{name}": getattr(plan.tokeniser, name) for name in LATER}  # as the earlier words were found
    for section in ("tokeniser", "training", "privacy", "federation", *(() if own_corpus else ("corpus",))):
        chosen = getattr(plan, section)
        usual = type(chosen)()
        found |= {f"{section}.{name}": value for name, value in vars(chosen).items() if value != getattr(usual, name)}
    return {name: value for name, value in found.items() if name not in _NOT_TO_GO_ON}


# ---- a whole plan as a file ------------------------------------------------------------------------------------------

_COMMENTS = 32  # the column in which they begin
_FIRST = ("model", "vocabulary", "tokeniser", "embeddings", "training", "privacy", "federation", "origins")


def plan_text(found: Recommendation, said: Mapping[str, str], head: Sequence[str] = ()) -> str:
    """The plan in TOML. `said` has further comments, by the names of settings and sections.

    What is 0 or nothing says nothing, and is left out; so are the documents of a simulation and how a coordinator is operated,
    where a plan says neither.
    """
    plan, comments = found.plan, {**found.why, **said}
    lines = [*(f"# {line}" for line in head), ""] if head else []
    lines += [_line("seed", plan.seed, comments.get("seed", "")), _line("profile", plan.profile, comments.get("profile", ""))]
    beside = [name for name in ("corpus", "coordinator") if getattr(plan, name) != getattr(Plan(), name)]
    for section in (*_FIRST, *beside):
        told = [_line(name, value, comments.get(f"{section}.{name}", "")) for name, value in _settings(plan, section)]
        if told:
            lines += ["", f"[{section}]" + (f"  # {comments[section]}" if section in comments else ""), *told]
    return "\n".join(lines) + "\n"


def _settings(plan: Plan, section: str) -> Iterator[tuple[str, Any]]:
    """The settings of a section that say something."""
    if section == "embeddings" and "embedding_size" not in plan.model.settings:
        return
    if section == "model":
        yield "name", plan.model.name
        yield from ((name, value) for name, value in plan.model.settings.items() if value is not None)
        return
    chosen = getattr(plan, section)
    idle = idle_in(vars(chosen)) if section == "corpus" else {}
    for one in fields(chosen):
        value = getattr(chosen, one.name)
        if one.name not in idle and (isinstance(value, bool) or value or value != one.default):
            yield one.name, value


def _line(name: str, value: Any, comment: str) -> str:
    setting = f"{name} = {_shown(value)}"
    return f"{setting:<{_COMMENTS - 2}}  # {comment}" if comment else setting


def _shown(value: Any) -> str:
    """A value as TOML writes it; texts of JSON are TOML's too."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {_shown(one)}" for name, one in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
