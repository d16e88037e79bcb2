"""The standard library's data classes; but `dataclass` makes no method before it is used, or shares one among all classes.

A command loads hundreds of these classes, and uses few of them. To compile their methods takes a quarter of the time in which
a party gets ready.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from dataclasses import asdict as asdict
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import is_dataclass as is_dataclass
from dataclasses import replace as replace
from functools import cache
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

_LEFT_TO_THE_LIBRARY = ("InitVar", "KW_ONLY")  # annotations that nobody here uses


@dataclasses.dataclass(frozen=True)
class _Frozen:
    field: int


@dataclasses.dataclass
class _Changing:
    field: int


_PARAMETERS = {frozen: vars(made)["__dataclass_params__"] for frozen, made in ((True, _Frozen), (False, _Changing))}
_PLAIN = fields(_Frozen)[0]._field_type  # type: ignore[attr-defined]


def _made(cls: type[Any], *, frozen: bool, init: bool, repr_: bool, eq: bool, kw_only: bool) -> type[Any]:
    """The class itself, with what the standard library reads of a data class."""
    known = dict[str, Field[Any]]()
    for base in reversed(cls.__mro__[1:]):
        known |= base.__dict__.get("__dataclass_fields__", {})
    known |= {one.name: one for one in _own_fields(cls, kw_only)}
    cls.__dataclass_fields__, cls.__dataclass_params__ = known, _PARAMETERS[frozen]
    written = set(cls.__dict__)
    if init and "__init__" not in written:
        cls.__init__ = _Late(cls)
    shared: dict[str, Any] = {"__repr__": _repr} if repr_ else {}
    if eq:
        shared |= {"__eq__": _eq}
        if cls.__dict__.get("__hash__") is None:
            cls.__hash__ = _hash if frozen else None  # type: ignore[assignment]
    if frozen:
        shared |= {made.__name__: made for made in _refusing_changes(cls, frozenset(known))}
    shared["__match_args__"] = tuple(one.name for one in known.values() if one.init and not one.kw_only)
    for name in shared.keys() - written:
        setattr(cls, name, shared[name])
    return abc.update_abstractmethods(cls)


def _own_fields(cls: type[Any], kw_only: bool) -> list[Field[Any]]:
    found = []
    for name, hint in get_annotations(cls).items():
        if str(hint).removeprefix("typing.").startswith("ClassVar"):
            continue
        given = cls.__dict__.get(name, MISSING)
        one: Any = given if isinstance(given, Field) else field(default=given)
        if one.default.__class__.__hash__ is None:
            raise ValueError(f"{cls.__name__}.{name} is shared by all instances and can change; use default_factory")
        if one.default is not MISSING:
            setattr(cls, name, one.default)
        elif given is not MISSING:
            delattr(cls, name)
        one.name, one.type, one._field_type = name, hint, _PLAIN
        one.kw_only = kw_only if one.kw_only is MISSING else one.kw_only
        found.append(one)
    return found


class _Late:
    """`__init__` of a class of which nobody has made an instance yet."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls

    def __get__(self, made: Any, owner: type[Any] | None = None) -> Any:
        init = _init(self.cls)
        self.cls.__init__ = init
        return init.__get__(made, owner)


class _NotGiven:
    def __repr__(self) -> str:
        return "<factory>"  # as signatures show it


_NOT_GIVEN = _NotGiven()


def _init(cls: type[Any]) -> Any:
    """One line for each field, as the standard library writes it."""
    frozen, told = cls.__dataclass_params__.frozen, fields(cls)
    names: dict[str, Any] = {"NOT_GIVEN": _NOT_GIVEN, "set_": object.__setattr__}
    taken, lines = dict[bool, list[str]]({False: [], True: []}), []
    for at, one in enumerate(told):
        value, default = one.name, ""
        if one.default_factory is not MISSING:
            names[f"make_{at}"], default = one.default_factory, "=NOT_GIVEN"
            value = f"make_{at}() if {one.name} is NOT_GIVEN else {one.name}" if one.init else f"make_{at}()"
        elif one.default is not MISSING:
            names[f"default_{at}"], default = one.default, f"=default_{at}"
        if one.init:
            taken[bool(one.kw_only)].append(f"{one.name}{default}")
        if one.init or one.default_factory is not MISSING:
            lines.append(f"set_(self, {one.name!r}, {value})" if frozen else f"self.{one.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *taken[False], *(["*", *taken[True]] if taken[True] else [])])
    exec(f"def __init__({parameters}):\n    " + "\n    ".join(lines or ["pass"]), names)  # noqa: S102
    init = names["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {one.name: one.type for one in told if one.init} | {"return": None}
    return init


@cache
def _compared(cls: type[Any]) -> Callable[[Any], Any]:
    """What is compared of an instance, as a tuple."""
    names = [one.name for one in fields(cls) if one.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda made: tuple(getattr(made, name) for name in names)


@recursive_repr()
def _repr(self: Any) -> str:
    told = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({told})"


def _eq(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    kind: Any = type(self)
    of = _compared(kind)
    return of(self) == of(other)


def _hash(self: Any) -> int:
    kind: Any = type(self)
    return hash(_compared(kind)(self))


def _refusing_changes(cls: type[Any], names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
if not TYPE_CHECKING:

    def dataclass(cls=None, /, *, init=True, repr=True, eq=True, frozen=False, kw_only=False, **rare):  # noqa: A002
        """As `dataclasses.dataclass`; classes with rare options are left to it."""
        if cls is None:
            return lambda one: dataclass(one, init=init, repr=repr, eq=eq, frozen=frozen, kw_only=kw_only, **rare)
        if rare:
            return dataclasses.dataclass(cls, init=init, repr=repr, eq=eq, frozen=frozen, kw_only=kw_only, **rare)
        return _made(cls, frozen=frozen, init=init, repr_=repr, eq=eq, kw_only=kw_only)
