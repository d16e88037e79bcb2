"""What a party keeps when the training has ended: the shared model and its words. It sends nothing.

The model is as good as the coordinator says; the party checks that it is one of the agreed kind, over the agreed words.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import State
from securetm.federation.origins import product_of
from securetm.federation.party.state import PartyState
from securetm.federation.refusal_errors import BadState, OutOfTurn
from securetm.federation.release import release
from securetm.federation.store import write_bytes
from securetm.federation.wire import wire

WORDS = "vocabulary.txt"


def keep_model(own: PartyState, finish: wire.Finish) -> tuple[bytes, ...]:
    """Writes the finished model beside the party's store. Told again, it writes it again."""
    questions, model = own.questions, own.agreement.model
    if not questions.vocabulary or questions.candidates:
        raise BadState("no vocabulary has been agreed on")
    state = _checked(own, finish.state) if own.learner is None else _own(own, finish)
    if finish.rounds:  # without a round there is nothing that a model could know
        write_bytes(own.store.folder / WORDS, "\n".join(questions.vocabulary).encode())
        origin = product_of(own.agreement, own.run, own.members, simulated=own.simulated)
        release(own.store.folder, model, state, questions.vocabulary, origin)
    own.finished = finish.rounds
    return ()


def _checked(own: PartyState, state: State) -> State:
    """Refuses a state that is none of the model's over these words, or holds a value that is not finite."""
    if not own.agreement.model.fits(state, len(own.questions.vocabulary)):
        raise BadState("it is no state of the model")
    if not all(np.isfinite(array).all() for array in state.values()):
        raise BadState("the finished model holds values that are not finite")
    return state


def _own(own: PartyState, finish: wire.Finish) -> State:
    """Returns the state that this party learned, or refuses where it missed a sum that the others learned from."""
    if finish.state or own.learner is None:
        raise BadState("the parties learn by themselves, so no model may come from the coordinator")
    if own.learner.rounds != finish.rounds:
        raise OutOfTurn(finish.rounds, own.learner.rounds)
    return own.learner.finished()
