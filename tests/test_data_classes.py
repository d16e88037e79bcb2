"""Our data classes do what the library's do, and make no method before it is used."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from securetm.data_classes import dataclass, field

Made = Callable[..., type[Any]]


class Named(ABC):
    known: ClassVar[dict[str, int]] = {}

    @property
    @abstractmethod
    def name(self) -> str: ...


def classes(make: Any) -> dict[str, type[Any]]:
    """One class of each kind, with classes derived from it, made by this decorator."""

    @make(frozen=True)
    class Frozen:
        first: int
        rest: tuple[int, ...] = ()
        made: list[int] = field(default_factory=list, compare=False)
        hidden: str = field(default="x", repr=False)
        known: ClassVar[int] = 3

    @make(frozen=True)
    class Derived(Frozen):
        first: int = 7
        last: float = 1.5

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.first + sum(self.rest))

    @make
    class Changing:
        one: str
        two: int = field(default=2, kw_only=True)
        three: int = field(default=5, init=False)
        four: dict[str, int] = field(default_factory=dict, init=False)

    @make(frozen=True, kw_only=True)
    class Keywords:
        one: int = 1
        two: int

    @make(eq=False)
    class Same:
        one: int = 1

    @make(frozen=True)
    class Own:
        one: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.one % 2 == other.one % 2

        def __hash__(self) -> int:
            return 11

        def __repr__(self) -> str:
            return "own"

    @make(frozen=True)
    class Empty:
        pass

    @make(frozen=True)
    class Called(Named):
        name: str = "called"

    @make(frozen=True, order=True)
    class Ordered:
        one: int

    return {kind.__name__: kind for kind in (Frozen, Derived, Changing, Keywords, Same, Own, Empty, Called, Ordered)}


OURS, THEIRS = classes(dataclass), classes(dataclasses.dataclass)
GIVEN: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Frozen", (1,), {}),
    ("Frozen", (1, (2, 3)), {"made": [4]}),
    ("Frozen", (), {}),
    ("Frozen", (1,), {"other": 2}),
    ("Derived", (), {}),
    ("Derived", (1, (5,)), {"last": 2.5, "hidden": "y"}),
    ("Changing", ("a",), {}),
    ("Changing", ("a",), {"two": 3}),
    ("Changing", ("a", 3), {}),
    ("Changing", ("a",), {"three": 3}),
    ("Keywords", (), {"two": 2}),
    ("Keywords", (2,), {}),
    ("Same", (), {}),
    ("Own", (3,), {}),
    ("Empty", (), {}),
    ("Called", (), {}),
    ("Called", ("other",), {}),
    ("Ordered", (1,), {}),
]


def told(kinds: dict[str, type[Any]], name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """All that can be told of an instance made of this, or what is raised."""
    kind = kinds[name]
    try:
        made, again = kind(*given, **named), kind(*given, **named)
    except TypeError as problem:
        return str(problem).rpartition(".")[2]
    try:
        hashed: Any = hash(made) == hash(again)
    except TypeError:
        hashed = "none"
    same, changed = (made == again, made == object(), hashed), list[str]()
    for change in (lambda: setattr(made, "first", 2), lambda: setattr(made, "other", 2), lambda: delattr(made, "one")):
        try:
            changed.append(str(change()))
        except (dataclasses.FrozenInstanceError, AttributeError) as problem:
            changed.append(f"{type(problem).__name__}: {problem}")
    shown = repr(again).rpartition("<locals>.")[2]
    values = dataclasses.asdict(again)
    return shown, same, changed, values, vars(again)


@pytest.mark.parametrize(("name", "given", "named"), GIVEN)
def test_instances_do_what_those_of_the_library_do(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert told(OURS, name, given, named) == told(THEIRS, name, given, named)


@pytest.mark.parametrize("name", OURS)
def test_classes_say_of_themselves_what_those_of_the_library_say(name: str) -> None:
    def said(kind: type[Any]) -> Any:
        shown = [(one.name, one.type, one.kw_only, one.default) for one in dataclasses.fields(kind)]
        return kind.__match_args__, str(inspect.signature(kind)), shown

    assert said(OURS[name]) == said(THEIRS[name])


def test_two_instances_differ_where_a_compared_field_does() -> None:
    kind = OURS["Frozen"]
    assert kind(1, made=[1]) == kind(1, made=[2])
    assert hash(kind(1, made=[1])) == hash(kind(1, made=[2]))
    assert kind(1) != kind(2)
    assert kind(1) != OURS["Derived"](1)
    assert len({kind(1), kind(1), kind(1, (2,))}) == 2
    assert dataclasses.replace(kind(1), rest=(3,)) == kind(1, (3,))


def test_either_kind_derives_from_the_other() -> None:
    for first, second in ((dataclass, dataclasses.dataclass), (dataclasses.dataclass, dataclass)):

        @first(frozen=True)
        class Base:
            one: int

        @second(frozen=True)
        class Further(Base):
            two: int = 2

        assert Further(1) == Further(1, 2)
        assert repr(Further(1)).endswith("Further(one=1, two=2)")
        with pytest.raises(dataclasses.FrozenInstanceError, match="one"):
            Further(1).one = 2


@dataclass(frozen=True)
class Kept:
    one: int
    two: str = "b"


def test_an_instance_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)


def test_a_default_that_all_instances_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match="shared by all instances"):

        @dataclass
        class Shared:
            one: list[int] = []  # noqa: RUF012


def test_nothing_is_compiled_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[str]()

    def counted(text: str, names: dict[str, Any]) -> None:
        compiled.append(text)
        exec(text, names)

    monkeypatch.setattr("securetm.data_classes.exec", counted, raising=False)
    kinds = classes(dataclass)
    assert compiled == []
    assert kinds["Frozen"](1) == kinds["Frozen"](1)
    assert len(compiled) == 1


@pytest.mark.parametrize("make", [dataclasses.dataclass, dataclass])
def test_an_object_within_itself_is_shown_once(make: Made) -> None:
    @make
    class Node:
        next: Any = None

    node = Node()
    node.next = [node]
    assert repr(node).endswith("Node(next=[...])")
