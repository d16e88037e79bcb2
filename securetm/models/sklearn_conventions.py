"""What scikit-learn's tools ask of a model beside `fit` and `transform`: settings, tags, names of columns, data frames.

scikit-learn is not imported here unless it asks for its tags. What a model learns and how is in estimator.py.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np

from securetm.contracts import Array, Reads
from securetm.data_frames import FRAMES, framed
from securetm.errors import BadSetting, NotFound, SecuretmError
from securetm.models.given_documents import numbered
from securetm.models.model_errors import NotFitted

_OUTPUT = "_sklearn_output_config"  # under this name scikit-learn keeps what `set_output` was told


class Learned(Protocol):
    """What these conventions read of a fitted model."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Its words."""
        ...


class SklearnConventions:
    """The methods by which `clone`, `Pipeline`, `GridSearchCV` and `set_output` use a model.

    Settings are frozen: nobody assigns them. `set_params` replaces them, because a search over settings needs it.
    """

    reads: ClassVar[frozenset[Reads]]
    n_topics: int
    _learned: ClassVar[Learned | None]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """A model on which scikit-learn can note things."""
        _take_notes(cast(Any, cls))
        return super().__new__(cls)

    # ---- settings ----

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - no setting has settings of its own
        """The settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **settings: Any) -> Self:
        """Replaces settings, checked as when the model is made. What was learned under other settings is forgotten."""
        before = self.get_params()
        if unknown := sorted(settings.keys() - before.keys()):
            raise NotFound(f"setting of {type(self).__name__}", unknown[0], tuple(before))
        if settings:
            made = type(self)(**{**before, **settings})  # refuses before anything is changed
            kept = {_OUTPUT: vars(self)[_OUTPUT]} if _OUTPUT in vars(self) else {}
            vars(self).clear()
            vars(self).update({**made.get_params(), **kept})
        return self

    def __sklearn_clone__(self) -> Self:
        """A model with the same settings that has learned nothing."""
        fresh = type(self)(**deepcopy(self.get_params()))
        if _OUTPUT in vars(self):
            object.__setattr__(fresh, _OUTPUT, dict(vars(self)[_OUTPUT]))
        return fresh

    # ---- what scikit-learn asks ----

    def __sklearn_tags__(self) -> Any:
        """Reads counts or texts, sparse or dense, none of them negative; needs no `y`."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        counts = Reads.SENTENCES not in self.reads and Reads.EMBEDDINGS not in self.reads
        given = InputTags(two_d_array=counts, sparse=counts, string=True, positive_only=True)
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64"]),
            input_tags=given,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned is not None

    # ---- names of columns ----

    @property
    def n_features_in_(self) -> int:
        """The number of words that were learned from."""
        return len(self._fitted().vocabulary)

    @property
    def feature_names_in_(self) -> Array:
        """The words that were learned from; there are none where a bare matrix was given."""
        words = self._fitted().vocabulary
        if numbered(words):
            raise AttributeError("a matrix without names of columns was given to fit, so there is no feature_names_in_")
        return np.array(words, dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002 - topics have names of their own
        """The name of each topic's column: `lda0`, `lda1`, ..."""
        self._fitted()
        name = type(self).__name__.lower()
        return np.array([f"{name}{topic}" for topic in range(self._topics_shown())], dtype=object)

    # ---- data frames ----

    def set_output(self, *, transform: str | None = None) -> Self:
        """`transform="pandas"` makes `transform` return data frames, `"default"` arrays; None leaves it as it is."""
        if transform is None:
            return self
        if transform not in FRAMES:
            raise BadSetting("set_output", "transform", repr(transform), "", known=FRAMES)
        object.__setattr__(self, _OUTPUT, {"transform": transform})
        return self

    def _as_output(self, shares: Array, given: Any) -> Any:
        """Topic shares in the form that `set_output`, or scikit-learn's own configuration, asks for."""
        own: Mapping[str, str] = vars(self).get(_OUTPUT, {})
        form = own.get("transform") or _configured()
        return shares if form == "default" else framed(form, shares, self.get_feature_names_out(), given)

    def _topics_shown(self) -> int:
        """Topics of the learned state: a model that finds its number of topics may have others than `n_topics`."""
        return self.n_topics

    def _fitted(self) -> Learned:
        if self._learned is None:
            raise unfitted(type(self).__name__)
        return self._learned


@cache
def _take_notes(cls: type) -> None:
    """Lets a frozen model take attributes whose names begin with `_`: scikit-learn's tools note things on it under such names.

    A dataclass gets the methods that freeze it after its class was made, so they are wrapped when the first model is made.
    """
    freeze, keep = cast(Any, cls.__setattr__), cast(Any, cls.__delattr__)

    def set_(model: object, name: str, value: Any) -> None:
        put = object.__setattr__ if name.startswith("_") else freeze
        put(model, name, value)

    def delete(model: object, name: str) -> None:
        drop = object.__delattr__ if name.startswith("_") else keep
        drop(model, name)

    cls.__setattr__, cls.__delattr__ = set_, delete  # type: ignore[method-assign,assignment]


def unfitted(model: str) -> SecuretmError:
    """The error of a model that has learned nothing, which whoever waits for scikit-learn's own also catches."""
    theirs = sys.modules.get("sklearn.exceptions")  # who names it has imported it
    return NotFitted(model) if theirs is None else _both(theirs.NotFittedError)(model)


@cache
def _both(theirs: type[Exception]) -> type[NotFitted]:
    return type("NotFitted", (NotFitted, theirs), {"__doc__": NotFitted.__doc__, "__module__": NotFitted.__module__})


def _configured() -> str:
    """What `sklearn.set_config(transform_output=...)` says; without scikit-learn nobody can have said anything."""
    configuration = sys.modules.get("sklearn")
    return "default" if configuration is None else str(configuration.get_config().get("transform_output", "default"))
