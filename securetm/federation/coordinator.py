"""The coordinator: straight-line code over a set of parties it cannot see into. It holds no document and trusts no reply.

It knows what answers tell it and nothing else; what it keeps is in its own store.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from securetm.agreement import Agreement
from securetm.contracts import (
    Answer,
    Array,
    Cohort,
    Entropy,
    Exchange,
    Needs,
    Parcel,
    Roster,
    RoundContext,
    State,
    Terms,
)
from securetm.errors import Refused, TooFewParties
from securetm.federation import wire
from securetm.federation.countersigning import Countersigning
from securetm.federation.limits import largest_reply
from securetm.federation.paying_errors import NoBudgetLeft, OutOfBudget, TooFewWordsFound
from securetm.federation.questions import COHERENCE, FREQUENCIES, HELD_OUT, JOINT, TOP_WORDS, TRAIN, WORDS, Questions
from securetm.federation.round import preparation_identity, question_identity, round_identity, state_digest
from securetm.federation.running_errors import ChangedFile, Diverged, PartyRefused
from securetm.federation.stopping import Stopping, relative_change
from securetm.federation.store import CoordinatorStore, write_bytes
from securetm.federation.transcript import Parties
from securetm.federation.word_floor import needed_by
from securetm.federation.words import Said, check_countable, chosen, message_of
from securetm.models.quality import diversity, top_words
from securetm.models.questions import merge_words, npmi_from_answer, perplexity_from_answer
from securetm.models.word_sketch import words_in
from securetm.profiles import cohort_of
from securetm.route import compile_route
from securetm.toml_settings import require

SECONDS_BETWEEN_KEEPS = 2.0
LONGEST_REASON = 500  # characters: it may quote the message
ROUNDS_PREPARED = 64  # by one set-up of an aggregation that has one
CHECKPOINT, BEST = "checkpoint", "best"
SAID = "what parties were told about words"  # and how far the questions were by then


class Watch(Protocol):
    """Whoever looks on while the coordinator works."""

    def round_begins(self, serial: int) -> None:
        """Before the first message of a round."""
        ...

    def opened(self, serial: int, answer: Answer) -> None:
        """When the coordinator has learned an answer: as it sees it, before it adds noise of its own where it is to."""
        ...

    def trained(self, done: int, total: int) -> None:
        """After each training round."""
        ...


@dataclass(frozen=True)
class Trained:
    """What the coordinator ends with. Every figure in it came from an answer or from public facts."""

    state: State
    vocabulary: tuple[str, ...]
    rounds: int
    quality: Mapping[str, float]
    stopped: str = "rounds"  # what ended the training: rounds, weights, held_out or budget


@dataclass
class Coordinator:
    """Runs one session from invitation to assessment; called again on the same store it goes on where it was."""

    members: tuple[str, ...]
    agreement: Agreement
    parties: Parties
    store: CoordinatorStore
    entropy: Entropy
    watch: Watch
    keys: Mapping[str, bytes] = field(default_factory=dict)
    _serial: int = 0
    _prepared: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)
    _kept_at: float = 0.0
    _refused: list[Refused] = field(default_factory=list)  # of the exchange under way
    _exhausted: bool = False
    _most: int = 0  # bytes of a reply in the exchange under way

    def __post_init__(self) -> None:
        self.questions = Questions(self.agreement)
        self.session = self.entropy.bytes(32)  # a new one at every start: whatever was under way before is abandoned
        roster = Roster(self.session, self.agreement.profile.digest, self.members, self.keys)
        self._seat = self.agreement.profile.aggregation.coordinator(roster, self.store)
        self._ledgers = Countersigning(self.members, self._carried)
        self._most = largest_reply(self.agreement.profile, len(self.members), 0, None)

    def run(self) -> Trained:
        """Invites, agrees on words, trains, assesses."""
        kept = self.store.kept_state(CHECKPOINT)
        self._go_back_to(kept[1] if kept else {"serial": 0, "numbers": {}})
        self._tell(wire.Invite(self.agreement.digest, self.agreement.profile.digest, self.members, self._serial))
        vocabulary = self._agreed_words() or self._agree_on_words()
        self._adopt(vocabulary)
        state, facts = kept or self._start(vocabulary)
        state, rounds = self._train(state, Stopping(self.agreement.plan.training, list(facts["history"])), int(facts["rounds"]))
        quality = self._assess(state)
        if self.questions.paid:
            self._ledgers.deliver()
        return Trained(state, vocabulary, rounds, quality, self._ended_by(rounds))

    # ---- words -----------------------------------------------------------------------------------------------------

    def _agree_on_words(self) -> tuple[str, ...]:
        """A public file's words, or those that the plan's rule takes of what was opened about the parties' words."""
        words = self.agreement.words
        if words is None:
            candidates, found, held = self._candidates()
            self._check_found(len(candidates))
            words = chosen(self.agreement.plan, candidates, found, held)
            least = self.agreement.plan.vocabulary.min_documents
            problem = f"leaves, with max_share, a single one of {len(candidates)} words"
            require(len(words) >= 2, "[vocabulary]", "min_documents", least, problem)
        write_bytes(self.store.folder / "vocabulary.txt", "\n".join(words).encode())
        # On disk before a party hears of it: it takes no other list, so that after a new start it has to be the same again.
        self.store.put(SAID, Said(words, self._serial, self._numbers).pack())
        return words

    def _check_found(self, words: int) -> None:
        """Behind noise it is the noise that decides which words are found, whatever else the plan asks of them."""
        needed = needed_by(self.agreement)
        if needed is not None and words < 2:
            raise TooFewWordsFound(words, needed.found_from)

    def _candidates(self) -> tuple[tuple[str, ...], int, Array]:
        """All words, the number of documents, and in how many of them each occurs."""
        if self.agreement.plan.vocabulary.source == JOINT:
            return words_in(self.ask(JOINT, {}, keep=True))
        candidates = check_countable(merge_words(self.ask(WORDS, {})))
        self._adopt(candidates, candidates=True)
        total = self.ask(FREQUENCIES, {}, keep=True).total
        assert total is not None
        return candidates, int(total["documents"][0]), total["frequencies"]

    def _agreed_words(self) -> tuple[str, ...]:
        """What was agreed on before this start; nothing where nothing was."""
        stored = self.store.get(SAID)
        if stored is None:
            return ()
        said = Said.unpack(stored)
        path, content = self.store.folder / "vocabulary.txt", "\n".join(said.words).encode()
        if not path.is_file() or path.read_bytes() != content:
            raise ChangedFile(str(path), "it is not the list that the parties were told")
        if self._serial < said.serial:  # killed before it kept its first state: what was opened is not asked again
            self._serial, self._numbers = said.serial, dict(said.numbers)
        return said.words

    def _adopt(self, words: tuple[str, ...], *, candidates: bool = False) -> None:
        self.questions.adopt(words, candidates=candidates)
        self._tell(message_of(words, candidates=candidates))

    # ---- training --------------------------------------------------------------------------------------------------

    def _start(self, vocabulary: Sequence[str]) -> tuple[State, dict[str, Any]]:
        state = self.agreement.model.start(vocabulary, np.random.default_rng(self.agreement.plan.seed))
        self._keep(state, 0, [])
        return state, {"history": [], "rounds": 0}

    def _train(self, state: State, stopping: Stopping, done: int) -> tuple[State, int]:
        """One question, one answer, one update, until the plan says it is enough."""
        total = self.agreement.plan.training.rounds
        mark = self.agreement.model.for_party(state, "")
        if self._blind:
            return self._conduct(state, done)
        while done < total and not stopping.settled():
            judged = stopping.due(done + 1)
            keep = self._keep_is_due() or done + 1 == total or judged
            state = self._settled(TRAIN, state)
            # Parties hold two kept rounds, so a step keeps once: after its last question.
            answer = self._afforded(state, keep=keep and not (judged and self._by_loss))
            if answer is None:  # every round before was kept when it was answered, and parties kept nothing of this one
                break
            state, done = self.agreement.model.update(state, answer), done + 1
            if not all(np.isfinite(array).all() for array in state.values()):
                raise Diverged(done)
            if judged and self._by_loss:
                state = self._settled(HELD_OUT, state)
            if judged:
                mark = self._judge(state, mark, stopping)
            if keep:
                self._keep(state, done, stopping.history)
            self.watch.trained(done, total)
        return self._best_or(state), done

    def _settled(self, question: str, state: State) -> State:
        """What the next question of that name is about: what it was about before this start, if it was asked; else this.

        A party answers a number again about the very same bits only, and arithmetic may move a last digit. So they are on
        disk before anybody is asked, until a checkpoint holds what came of it.
        """
        number = self._numbers.get(question, 0)
        if (kept := self.store.kept_asked(question, number)) is not None:
            return {**state, **kept}
        model = self.agreement.model
        self.store.keep_asked(question, number, state if model.party_models else model.for_party(state, ""))
        return state

    def _afforded(self, state: State, *, keep: bool) -> Answer | None:
        """The next answer, or nothing more where a party's budget does not reach any further: the model so far is kept."""
        try:
            return self.ask(TRAIN, state, keep=keep)
        except NoBudgetLeft:
            self._exhausted = True
            return None

    def _ended_by(self, rounds: int) -> str:
        if self._exhausted:
            return "budget"
        return "rounds" if rounds >= self.agreement.plan.training.rounds else self.agreement.plan.training.stop

    def _conduct(self, state: State, done: int) -> tuple[State, int]:
        """Where the parties open the sums they also learn: the coordinator counts rounds, and its state stays empty of them."""
        total = self.agreement.plan.training.rounds
        while done < total:
            keep = self._keep_is_due() or done + 1 == total
            self.ask(TRAIN, state, keep=keep)
            done += 1
            if keep:
                self._keep(state, done, [])
            self.watch.trained(done, total)
        return state, done

    @property
    def _blind(self) -> bool:
        return self.agreement.profile.aggregation.opened_by == "parties"

    def _judge(self, state: State, mark: State, stopping: Stopping) -> State:
        """Takes the measure that decides about stopping; held-out loss is a question like any other."""
        public = self.agreement.model.for_party(state, "")
        loss = self.ask(HELD_OUT, state, keep=True) if self._by_loss else None
        value = perplexity_from_answer(loss) if loss else relative_change(mark, public)
        self.store.later(
            "INSERT OR REPLACE INTO losses VALUES (?, ?, ?)", self._serial, self.agreement.plan.training.stop, value
        )
        if stopping.note(value) and self._by_loss:
            self.store.keep_state(BEST, state, {"serial": self._serial})
        return public

    @property
    def _by_loss(self) -> bool:
        return self.agreement.plan.training.stop == HELD_OUT

    def _best_or(self, state: State) -> State:
        best = self.store.kept_state(BEST) if self._by_loss else None
        return best[0] if best else state

    def _assess(self, state: State) -> dict[str, float]:
        """Quality of the shared model: two more questions, and one figure from the topics alone."""
        if self._blind:
            self.ask(HELD_OUT, state)  # its answer is the parties' to know
            return {}
        if self.questions.paid:  # nothing was set aside for these questions
            return {"diversity": float(diversity(top_words(self.agreement.model.topics(state), 25)))}
        top = top_words(self.agreement.model.topics(state), TOP_WORDS)
        coherence = npmi_from_answer(top, self.ask(COHERENCE, {"top": top.astype(np.int64)}))
        held_out = perplexity_from_answer(self.ask(HELD_OUT, state))
        spread = diversity(top_words(self.agreement.model.topics(state), 25))
        return {"npmi": float(np.mean(coherence)), "diversity": float(spread), "held_out": held_out}

    # ---- one round -------------------------------------------------------------------------------------------------

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        """One question to all parties. The coordinator then knows the answer that the aggregation opens."""
        if self._seat.prepared < 1:
            self._prepare()
        begun, self._serial = time.perf_counter(), self._serial + 1
        self.watch.round_begins(self._serial)
        shown = {member: self.questions.shown(question, state, member) for member in self.members}
        query = self.questions.make(question, shown[self.members[0]])
        if self._blind:  # the shapes of the start are public; what became of them is not the coordinator's
            shown = {member: {} for member in self.members}
        about = shown[self.members[0]]
        unnamed = self._cohort(question, query.terms)
        route = compile_route(query.terms, self.agreement.profile, unnamed)
        terms = route.terms
        meant = (self.agreement.profile.digest, state_digest(about, terms), self.questions.words(question))
        cohort = replace(unnamed, round_id=round_identity(self.session, question, unnamed, self._serial, terms, *meant))
        ask = wire.Ask(question, cohort.number, self._serial, self.members, cohort.round_id, about, keep)
        requests = self._requests(ask, shown, terms, self._ledgers.gather() if self.questions.paid else {})
        opened, traffic = self._exchange(cohort, terms, requests)
        context = RoundContext(cohort, self.entropy, self.store)
        seen, answer = route.seen_and_opened(opened, context)
        self._record(ask, answer, traffic, time.perf_counter() - begun)
        self.watch.opened(self._serial, seen)
        return answer

    def _cohort(self, question: str, terms: Terms) -> Cohort:
        number = self._number(question)
        named = question_identity(question, number, terms)
        return cohort_of(self.agreement.profile, self.members, number=number, seed=self.agreement.plan.seed, question=named)

    def _requests(
        self, ask: wire.Ask, shown: Mapping[str, State], terms: Terms, witnesses: Mapping[str, tuple[bytes, ...]]
    ) -> dict[str, bytes]:
        if terms.needs is Needs.SUM and not witnesses:  # every party sees the same, so it is packed once
            return dict.fromkeys(self.members, wire.pack_request(self.session, ask))
        whole = {m: replace(ask, state=shown[m], witnesses=witnesses.get(m, ())) for m in self.members}
        return {member: wire.pack_request(self.session, one) for member, one in whole.items()}

    def _carried(self, bodies: Mapping[str, wire.Body]) -> dict[str, wire.Accepted]:
        """To each party its message, and what the parties said that answered."""
        requests = {member: wire.pack_request(self.session, body) for member, body in bodies.items()}
        return {member: self._accepted(member, reply) for member, reply in self.parties.ask(requests).items()}

    def _exchange(self, cohort: Cohort, terms: Terms, requests: Mapping[str, bytes]) -> tuple[Answer, tuple[int, int]]:
        """One round of the aggregation; the coordinator then knows what it opens, and no more."""
        self._most = largest_reply(self.agreement.profile, len(self.members), 0, terms)
        traffic = self._carry(self._seat.round(cohort, terms, None), cohort.round_id, requests)
        return self._opened(cohort), traffic

    def _opened(self, cohort: Cohort) -> Answer:
        """What the seat opens; where too few are left because their messages were refused, the first refusal says why."""
        try:
            return self._seat.answer(cohort.round_id)
        except TooFewParties as few:
            if self._refused:
                raise self._refused[0] from few
            raise

    def _prepare(self) -> None:
        """The aggregation's set-up for the next rounds: keys and shares, nothing that depends on documents."""
        self._prepared += 1
        name = preparation_identity(self.session, self._prepared, ROUNDS_PREPARED)
        request = wire.pack_request(self.session, wire.Prepare(name, self._prepared, ROUNDS_PREPARED))
        self._most = largest_reply(self.agreement.profile, len(self.members), ROUNDS_PREPARED, None)
        self._carry(self._seat.prepare(ROUNDS_PREPARED), name, dict.fromkeys(self.members, request))

    def _carry(self, exchange: Exchange, name: bytes, requests: Mapping[str, bytes]) -> tuple[int, int]:
        """Carries messages until the exchange has nothing more to say; who does not answer in time has dropped out."""
        up = down = 0
        self._refused = []
        while requests:
            replies = self.parties.ask(requests)
            up, down = up + sum(map(len, replies.values())), down + sum(map(len, requests.values()))
            further: list[Parcel] = []
            taken = [m for m, reply in replies.items() if self._took(exchange, m, self._accepted(m, reply), further)]
            further.extend(exchange.expire([m for m in requests if m not in taken]))
            requests = {m: wire.pack_request(self.session, wire.Forward(name, p)) for m, p in further}
        return up, down

    def _took(self, exchange: Exchange, member: str, said: wire.Accepted, further: list[Parcel]) -> bool:
        """A party whose message is not as agreed is missing in this round, like one that said nothing; why is kept."""
        try:
            for parcel in said.parcels:
                further.extend(exchange.receive(member, parcel))
        except Refused as refusal:
            self._refused.append(refusal)
            why = {"name": type(refusal).__name__, "reason": str(refusal)[:LONGEST_REASON]}
            self.store.note("refusals", {"serial": self._serial, "party": member, **why})
            return False
        return True

    def _tell(self, body: wire.Body) -> None:
        """A message that asks nothing of the documents; enough parties must take it."""
        replies = self.parties.ask(dict.fromkeys(self.members, wire.pack_request(self.session, body)))
        for member, reply in replies.items():
            self._accepted(member, reply)
        if len(replies) < self.agreement.profile.minimum_parties:
            raise TooFewParties(len(replies), len(self.members), self.agreement.profile.minimum_parties)

    def _accepted(self, member: str, reply: bytes) -> wire.Accepted:
        session, outcome = wire.unpack_reply(reply, member, self._most)
        if isinstance(outcome, wire.Refusal) and outcome.name == OutOfBudget.__name__:
            raise NoBudgetLeft(member)
        if isinstance(outcome, wire.Refusal):
            raise PartyRefused(member, outcome.name)
        if session != self.session:
            raise PartyRefused(member, "WrongSession")
        if outcome.head:
            self._ledgers.heads[member] = outcome.head
        return outcome

    # ---- what is kept ----------------------------------------------------------------------------------------------

    def _number(self, question: str) -> int:
        number = self._numbers.get(question, 0)
        self._numbers[question] = number + 1
        return number

    def _record(self, ask: wire.Ask, answer: Answer, traffic: tuple[int, int], seconds: float) -> None:
        row = (ask.serial, ask.question, ask.number, " ".join(answer.survivors), *traffic, seconds)
        self.store.later("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def _keep_is_due(self) -> bool:
        """Now and then; after every round that a budget pays for, since one that is lost would have to be paid again."""
        return self.questions.paid or time.monotonic() - self._kept_at > SECONDS_BETWEEN_KEEPS

    def _keep(self, state: State, rounds: int, history: Sequence[float]) -> None:
        facts = {"serial": self._serial, "numbers": self._numbers, "rounds": rounds, "history": list(history)}
        self.store.keep_state(CHECKPOINT, state, facts)
        self.store.forget_asked()
        self._kept_at = time.monotonic()

    def _go_back_to(self, facts: Mapping[str, Any]) -> None:
        self._serial, self._numbers = int(facts["serial"]), dict(facts["numbers"])
        self.store.forget_after(self._serial)
