"""The schema language: one declarative class per message covers all its versions.

    @message(ApiKey.HEARTBEAT)
    class HeartbeatRequest:
        group_id: str = wire()
        generation_id: int32 = wire()
        member_id: str = wire()
        group_instance_id: str | None = wire(versions="3+", nullable="3+", default=None)   # KIP-345

A class is cheap to declare: its annotations are read, and its `__init__` and codecs compiled, only at first use,
because a broker that starts in 300 ms cannot afford three hundred dataclasses. Instances have slots, compare by value
and print their fields. Source: Kafka's message generator (KIP-482 for flexible versions and tagged fields).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import UnionType
from typing import Any, Final, NamedTuple, Protocol, TypeVar, Union, dataclass_transform, get_args, get_origin

from protocol.api_key import ApiKey
from protocol.versions import NONE, Versions, parse_versions

T = TypeVar("T")


class _Implicit:
    """The zero value of a type: 0, "", an empty list, or a struct of defaults."""

    def __repr__(self) -> str:
        return "IMPLICIT"


IMPLICIT: Final = _Implicit()


class Wire(NamedTuple):
    """The arguments of `wire()` for one field."""

    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: Any
    flexible: bool


def wire(
    *,
    versions: str = "0+",
    nullable: str | None = None,
    tag: int | None = None,
    tagged: str | None = None,
    default: Any = IMPLICIT,
    flexible: bool = True,
) -> Any:
    """Declares a field: the versions that have it, the versions in which it may be null, its tag and the versions that
    tag it (by default all that have it), and its default in versions without it. `flexible=False` keeps the classic
    length prefix in flexible versions (the client id of a request header)."""
    carried = parse_versions(versions)
    in_tags = NONE if tag is None else parse_versions(tagged) if tagged else carried
    return Wire(carried, parse_versions(nullable), tag, in_tags, default, flexible)


class Kind(NamedTuple):
    """A field's type: "string", "bytes", "records", "bool", "int32" …, "struct" (with its class) or "array" (of
    items)."""

    name: str
    struct: type | None = None
    items: Kind | None = None


class Field(NamedTuple):
    """A field of a message, for the codec's compiler."""

    name: str
    kind: Kind
    wire: Wire

    def default_source(self) -> str:
        """Returns Python source of the default, in which a struct's class has its own name."""
        default = self.wire.default
        if default is not IMPLICIT:
            return repr(default)
        if self.kind.struct is not None:
            return f"{self.kind.struct.__name__}()"
        return ZERO_SOURCE.get(self.kind.name, "0")


ZERO_SOURCE: Final = {
    "string": "''",
    "bytes": "b''",
    "records": "b''",
    "bool": "False",
    "array": "[]",
    "uuid": repr(bytes(16)),
    "float64": "0.0",
}

_PLAIN_KINDS: dict[object, str] = {str: "string", bytes: "bytes", bool: "bool"}
_PLAIN_NAMES = {plain.__name__: plain for plain in (str, bytes, bool)}


def kind_of(annotation: Any) -> Kind:
    """Returns the wire type of an evaluated annotation. Raises TypeError for an annotation without a wire type."""
    metadata = getattr(annotation, "__metadata__", None)
    if metadata:
        return Kind(metadata[0])
    origin = get_origin(annotation)
    if origin is list:
        return Kind("array", items=kind_of(get_args(annotation)[0]))
    if origin in (Union, UnionType):  # X | None: wire(nullable=…) declares the versions
        return kind_of(next(arm for arm in get_args(annotation) if arm is not type(None)))
    if annotation in _PLAIN_KINDS:
        return Kind(_PLAIN_KINDS[annotation])
    if hasattr(annotation, "__wire__"):
        return Kind("struct", struct=annotation)
    raise TypeError(f"{annotation!r} is not a type of the wire")


def fields_of(cls: type) -> tuple[Field, ...]:
    """Returns the fields of a message or struct in wire order, and caches them."""
    cached: tuple[Field, ...] | None = cls.__dict__.get("__fields_cache__")
    if cached is None:
        declared: dict[str, Wire] = cls.__wire__  # type: ignore[attr-defined]  # set by struct()
        cached = tuple(Field(name, kind_of(annotation_of(cls, name)), spec) for name, spec in declared.items())
        cls.__fields_cache__ = cached  # type: ignore[attr-defined]
    return cached


def since(cls: type, name: str) -> int:
    """Returns the first version of a message or struct that has a field."""
    spec: Wire = cls.__wire__[name]  # type: ignore[attr-defined]  # set by struct()
    return spec.versions.first


def nullable_since(cls: type, name: str) -> int:
    """Returns the first version in which a field may be null."""
    spec: Wire = cls.__wire__[name]  # type: ignore[attr-defined]  # set by struct()
    return spec.nullable.first


def annotation_of(cls: type, name: str) -> Any:
    """Returns a field's evaluated annotation. Nearly all annotations are a single name, which this function looks up;
    typing.get_type_hints would compile hundreds of annotations at each start."""
    source, scope = cls.__annotations__[name], vars(sys.modules[cls.__module__])
    named = scope.get(source) or _PLAIN_NAMES.get(source)
    return eval(source, scope) if named is None else named


def _compile_init(cls: type) -> Callable[..., None]:
    """Returns a keyword-only `__init__`. Every field has a default; each instance gets new mutable defaults."""
    fields = fields_of(cls)
    scope: dict[str, Any] = {field.kind.struct.__name__: field.kind.struct for field in fields if field.kind.struct}
    scope["_fresh"] = IMPLICIT
    parameters, body = [], []
    for name, source, fresh in ((f.name, f.default_source(), _is_mutable(f)) for f in fields):
        parameters.append(f"{name}=_fresh" if fresh else f"{name}={source}")
        body.append(f" self.{name} = {source} if {name} is _fresh else {name}" if fresh else f" self.{name} = {name}")
    star = "*, " if parameters else ""
    exec(f"def __init__(self, {star}{', '.join(parameters)}):\n" + ("\n".join(body) or " pass"), scope)
    return scope["__init__"]  # type: ignore[no-any-return]


def _is_mutable(field: Field) -> bool:
    return field.wire.default is IMPLICIT and field.kind.name in ("array", "struct")


def _first_init(self: Any, *args: Any, **kwargs: Any) -> None:
    cls = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, *args, **kwargs)


def _equal(self: Any, other: Any) -> bool:
    if type(self) is not type(other):
        return NotImplemented  # type: ignore[no-any-return]  # the result for another type
    return all(getattr(self, name) == getattr(other, name) for name in self.__wire__)


def _print(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__wire__)})"


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def struct(cls: type[T]) -> type[T]:
    """Declares a part of a message. The versions of its fields are those of the message."""
    declared = {name: value for name, value in cls.__dict__.items() if isinstance(value, Wire)}
    namespace = {name: value for name, value in cls.__dict__.items() if name not in declared}
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    namespace.update(__slots__=tuple(declared), __wire__=declared, __init__=_first_init, __eq__=_equal, __repr__=_print)
    namespace["__hash__"] = None
    slotted: type[T] = type(cls.__name__, cls.__bases__, namespace)
    return slotted


class Message(Protocol):
    """An instance of any class that `@message` or `@struct` declares. Such classes have no common base."""


class MessageIdentity(NamedTuple):
    """A message's API key (or record type), its versions, and its flexible versions (KIP-482)."""

    key: int
    versions: Versions
    flexible: Versions


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def message(api: ApiKey) -> Callable[[type[T]], type[T]]:
    """Declares a request or response of an API."""
    return _declare(MessageIdentity(api, api.versions, api.flexible))


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def versioned(key: int, *, versions: str, flexible: str = "none") -> Callable[[type[T]], type[T]]:
    """Declares a message that belongs to no API: a header, or a record of an internal log, whose type is `key`."""
    return _declare(MessageIdentity(key, parse_versions(versions), parse_versions(flexible)))


def _declare(declared: MessageIdentity) -> Callable[[type[T]], type[T]]:
    def declare(cls: type[T]) -> type[T]:
        slotted = struct(cls)
        slotted.__message__ = declared  # type: ignore[attr-defined]
        return slotted

    return declare


def identity(cls: type) -> MessageIdentity:
    """Returns the identity that `@message` gave the class."""
    return cls.__message__  # type: ignore[attr-defined,no-any-return]
