"""Compiles a message class into a decoder and an encoder per version: straight-line Python, generated from the schema.

Runs of fixed-width fields become a single struct call; every length is checked against the rest of the frame before it
is used. The generated source is in `linecache`, so that a traceback shows its lines. A request calls only generated
functions.
"""

from __future__ import annotations

import linecache
import struct as struct_module
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from protocol import primitives
from protocol.budget import ItemBudget
from protocol.errors import ProtocolError
from protocol.schema import IMPLICIT, Field, Kind, fields_of, identity
from protocol.types import Buffer

T = TypeVar("T")
Decoder = Callable[[Buffer, int, int], tuple[Any, int]]
"""(buffer, position, end) → (message, position after it). Raises MALFORMED errors, or ProtocolError."""
Encoder = Callable[[Any, Callable[[Buffer], None]], None]
"""(message, append) → None: appends the message's buffers. Records are not copied."""

FORMATS = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "uint32": "I", "float64": "d", "bool": "?",
    "uuid": "16s",
}  # fmt: skip
SIZES = {kind: struct_module.calcsize(">" + code) for kind, code in FORMATS.items()}
MALFORMED = (struct_module.error, IndexError, ValueError)
"""The errors that a generated decoder raises for malformed or incomplete bytes."""


def decode(cls: type[T], version: int, buffer: Buffer, position: int = 0) -> tuple[T, int]:
    """Returns the message at `position` and the position after it. Raises ProtocolError for any malformed bytes."""
    try:
        return decoder(cls, version)(buffer, position, len(buffer))  # type: ignore[arg-type]  # classes do hash
    except MALFORMED as error:
        raise ProtocolError(f"{cls.__name__} v{version}: {error}", offset=position) from error


def encode(value: object, version: int, prefix: bytes = b"") -> bytes:
    """Returns the message's bytes after `prefix`."""
    parts: list[Buffer] = [prefix]
    encoder(type(value), version)(value, parts.append)  # type: ignore[arg-type]  # classes do hash
    return b"".join(parts)


@cache
def decoder(cls: type, version: int) -> Decoder:
    """Returns the compiled decoder of a message class at a version. Raises ValueError when there is no such version."""
    return _compile("decode", cls, version)  # type: ignore[no-any-return]


def bounded_decoder(cls: type, version: int, most_items: int) -> Decoder:
    """Returns a decoder that raises ProtocolError if a message has more than `most_items` array items and tags. This
    limits the objects that it creates for a frame, even if an item takes few bytes. Two threads must not call it at the
    same time."""
    budget = ItemBudget(most_items)
    inner = _compile("decode", cls, version, spend=budget.spend)

    def decode_within(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        budget.left = most_items
        return inner(buffer, position, end)  # type: ignore[no-any-return]

    return decode_within


@cache
def encoder(cls: type, version: int) -> Encoder:
    """Returns the compiled encoder of a message class at a version. Raises ValueError when there is no such version."""
    return _compile("encode", cls, version)  # type: ignore[no-any-return]


def _compile(direction: str, cls: type, version: int, spend: Callable[[int], None] | None = None) -> Any:
    message_identity = identity(cls)
    if version not in message_identity.versions:
        raise ValueError(f"{cls.__name__} has versions {message_identity.versions}, not {version}")
    source = (_DecoderSource if direction == "decode" else _EncoderSource)(
        version, version in message_identity.flexible
    )
    if spend is not None:
        source.scope["spend"] = spend
    source.struct(cls)
    text = "\n".join(source.lines) + "\n"
    filename = f"<{direction} {cls.__name__} v{version}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), source.scope)
    return source.scope[f"{direction}_{cls.__name__}"]


class _Source:
    """The generated source of the decoder or encoder of one version. Functions of inner structs come first."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "tail": primitives.read_uvarint_tail, "overrun": primitives.overrun, "null": primitives.unexpected_null,
            "uvarint": primitives.uvarint, "new": object.__new__, "ProtocolError": ProtocolError,
            "unpack_array": struct_module.unpack_from, "pack_array": struct_module.pack,
        }  # fmt: skip
        self.done: set[str] = set()

    def split(self, cls: type) -> tuple[list[Field], list[Field], list[Field]]:
        """Returns the plain fields in order, the tagged fields by tag, and the fields that this version lacks."""
        plain: list[Field] = []
        tagged: list[Field] = []
        absent: list[Field] = []
        for field in fields_of(cls):
            spec = field.wire
            where = absent if self.version not in spec.versions else plain
            where = tagged if self.in_tags(field) and where is plain else where
            where.append(field)
        return plain, sorted(tagged, key=lambda field: field.wire.tag or 0), absent

    def nullable(self, field: Field) -> bool:
        return self.version in field.wire.nullable

    def in_tags(self, field: Field) -> bool:
        return self.flexible and self.version in field.wire.tagged

    def compact(self, field: Field) -> bool:
        return self.flexible and field.wire.flexible

    def packer(self, method: str, codes: str) -> str:
        """Returns the name of a precompiled struct's method, bound in the generated code's scope."""
        name = f"{method}_{codes.replace('?', 'o')}"  # an identifier; no format has an "o"
        if name not in self.scope:
            compiled = struct_module.Struct(">" + codes)
            self.scope[name] = compiled.unpack_from if method == "unpack" else compiled.pack
        return name

    def default(self, field: Field) -> str:
        if field.kind.struct is not None:
            self.scope[field.kind.struct.__name__] = field.kind.struct
        return field.default_source()

    def min_size(self, kind: Kind, compact: bool) -> int:
        """Returns the minimum number of bytes of a value, to check an array's count against the remaining bytes."""
        if kind.name in SIZES:
            return SIZES[kind.name]
        if kind.struct is None:
            return 1 if compact else 2 if kind.name == "string" else 4
        plain, _, _ = self.split(kind.struct)
        tags = 1 if self.flexible else 0
        return tags + sum(
            1 if f.kind.struct is not None and self.nullable(f) else self.min_size(f.kind, self.compact(f))
            for f in plain
        )


class _DecoderSource(_Source):
    def struct(self, cls: type) -> None:
        name = cls.__name__
        if name in self.done:
            return
        self.done.add(name)
        plain, tagged, absent = self.split(cls)
        body = [f"def decode_{name}(b, p, e):", f" o = new({name})"]
        self.scope[name] = cls
        body += [f" o.{field.name} = {self.default(field)}" for field in (*absent, *tagged)]
        run: list[Field] = []
        for field in plain:
            if field.kind.name in FORMATS:
                run.append(field)
                continue
            self.fixed(body, run)
            self.variable(body, " ", field, "e")
        self.fixed(body, run)
        if self.flexible:
            self.tags(body, tagged)
        self.lines += [*body, " return o, p", ""]

    def fixed(self, body: list[str], run: list[Field]) -> None:
        """Generates a single unpack for neighbouring fixed-width fields."""
        if not run:
            return
        codes = "".join(FORMATS[field.kind.name] for field in run)
        targets = ", ".join(f"o.{field.name}" for field in run)
        body.append(f" {targets}, = {self.packer('unpack', codes)}(b, p)")
        body.append(f" p += {sum(SIZES[field.kind.name] for field in run)}")
        run.clear()

    def variable(self, body: list[str], pad: str, field: Field, end: str) -> None:
        kind = field.kind
        if kind.struct is not None:
            self.nested(body, pad, field, end)
            return
        self.length(body, pad, "n", self.compact(field), short=kind.name == "string")
        absent = f"o.{field.name} = None" if self.nullable(field) else f"raise null('{field.name}', p)"
        body.append(f"{pad}if n < 0: {absent}")
        if kind.items is not None:
            self.array(body, pad, field.name, kind.items, self.compact(field), end)
            return
        body += [
            f"{pad}else:",
            f"{pad} q = p + n",
            f"{pad} if q > {end}: raise overrun('{field.name}', n, p, {end})",
            f"{pad} o.{field.name} = {VALUE_OF[kind.name]}",
            f"{pad} p = q",
        ]

    def length(self, body: list[str], pad: str, name: str, compact: bool, short: bool) -> None:
        """Generates the read of a length or count into `name`. -1 means null in both encodings."""
        if compact:
            body += [
                f"{pad}{name} = b[p]; p += 1",
                f"{pad}if {name} > 127: {name}, p = tail(b, p, {name})",
                f"{pad}{name} -= 1",
            ]
        else:
            code = "h" if short else "i"
            body.append(
                f"{pad}{name}, = {self.packer('unpack', code)}(b, p); p += {SIZES['int16' if short else 'int32']}"
            )

    def array(self, body: list[str], pad: str, name: str, items: Kind, compact: bool, end: str) -> None:
        size = max(1, self.min_size(items, compact))  # otherwise the count of zero-byte items would have no limit
        body.append(f"{pad}elif n * {size} > {end} - p: raise overrun('{name}', n, p, {end})")
        body.append(f"{pad}else:")
        if "spend" in self.scope:
            body.append(f"{pad} spend(n)")
        if items.name == "uuid":  # a single struct would need a format as long as the array
            body.append(f"{pad} q = p + n * {SIZES['uuid']}")
            body.append(f"{pad} o.{name} = [bytes(b[i:i + {SIZES['uuid']}]) for i in range(p, q, {SIZES['uuid']})]")
            body.append(f"{pad} p = q")
            return
        if items.name in FORMATS:
            body.append(f"{pad} o.{name} = list(unpack_array('>' + {ARRAY_FORMAT[items.name]}, b, p))")
            body.append(f"{pad} p += n * {SIZES[items.name]}")
            return
        body += [f"{pad} a = []", f"{pad} for _ in range(n):"]
        if items.struct is not None:
            self.struct(items.struct)
            body.append(f"{pad}  x, p = decode_{items.struct.__name__}(b, p, {end})")
        else:
            self.length(body, pad + "  ", "m", compact, short=items.name == "string")
            body += [
                f"{pad}  if m < 0: raise null('an item of {name}', p)",
                f"{pad}  q = p + m",
                f"{pad}  if q > {end}: raise overrun('an item of {name}', m, p, {end})",
                f"{pad}  x = {VALUE_OF[items.name]}; p = q",
            ]
        body += [f"{pad}  a.append(x)", f"{pad} o.{name} = a"]

    def nested(self, body: list[str], pad: str, field: Field, end: str) -> None:
        """Generates an inline struct. A nullable struct has a signed byte before it, negative for null, or in a tag a
        varint, 0 for null."""
        assert field.kind.struct is not None
        self.struct(field.kind.struct)
        if self.nullable(field):
            null = "n == 0" if self.in_tags(field) else "n > 127"
            body += [f"{pad}n = b[p]; p += 1", f"{pad}if {null}: o.{field.name} = None", f"{pad}else:"]
            pad += " "
        body.append(f"{pad}o.{field.name}, p = decode_{field.kind.struct.__name__}(b, p, {end})")

    def tags(self, body: list[str], tagged: list[Field]) -> None:
        """Generates the tag section: reads known tags within their size, and skips unknown tags (KIP-482)."""
        body += [" k = b[p]; p += 1", " if k > 127: k, p = tail(b, p, k)"]
        if "spend" in self.scope:
            body.append(" spend(k)")
        body.append(" for _ in range(k):")
        body += ["  t = b[p]; p += 1", "  if t > 127: t, p = tail(b, p, t)"]
        body += ["  s = b[p]; p += 1", "  if s > 127: s, p = tail(b, p, s)"]
        body += ["  z = p + s", "  if z > e: raise overrun('a tagged field', s, p, e)"]
        word = "if"
        for field in tagged:
            body.append(f"  {word} t == {field.wire.tag}:")
            word = "elif"
            if field.kind.name in FORMATS:
                unpack = self.packer("unpack", FORMATS[field.kind.name])
                body.append(f"   o.{field.name}, = {unpack}(b, p); p += {SIZES[field.kind.name]}")
            else:
                self.variable(body, "   ", field, "z")
            body.append(f"   if p != z: raise ProtocolError('tagged field {field.name} has a wrong length', offset=p)")
        body.append("  p = z")


VALUE_OF = {"string": f"str(b[p:q], 'utf-8', '{primitives.AS_JAVA}')", "bytes": "bytes(b[p:q])", "records": "b[p:q]"}
ARRAY_FORMAT = {kind: f"str(n) + '{code}'" for kind, code in FORMATS.items() if kind != "uuid"}


class _EncoderSource(_Source):
    def struct(self, cls: type) -> None:
        name = cls.__name__
        if name in self.done:
            return
        self.done.add(name)
        plain, tagged, _ = self.split(cls)
        body = [f"def encode_{name}(o, w):"]
        run: list[tuple[str, str]] = []
        for field in plain:
            if field.kind.name in FORMATS:
                run.append((FORMATS[field.kind.name], f"o.{field.name}"))
            else:
                self.variable(body, " ", field, run)
        self.flush(body, " ", run)
        if self.flexible:
            self.tags(body, tagged)
        self.lines += [*body, *(() if len(body) > 1 else (" pass",)), ""]

    def flush(self, body: list[str], pad: str, run: list[tuple[str, str]]) -> None:
        """Generates a single pack for the collected fixed-width values."""
        if run:
            codes = "".join(code for code, _ in run)
            body.append(f"{pad}w({self.packer('pack', codes)}({', '.join(value for _, value in run)}))")
            run.clear()

    def variable(self, body: list[str], pad: str, field: Field, run: list[tuple[str, str]]) -> None:
        kind, compact, value = field.kind, self.compact(field), f"o.{field.name}"
        short = kind.name == "string"
        if self.nullable(field):
            self.flush(body, pad, run)
            zero = compact and (kind.struct is None or self.in_tags(field))
            null = repr(bytes(1) if zero else b"\xff" * (1 if kind.struct else 2 if short else 4))
            body += [f"{pad}if {value} is None: w({null})", f"{pad}else:"]
            pad += " "
        if kind.struct is not None:
            self.struct(kind.struct)
            self.flush(body, pad, run)
            if self.nullable(field):
                body.append(f"{pad}w(b'\\x01')")
            body.append(f"{pad}encode_{kind.struct.__name__}({value}, w)")
            return
        body.append(f"{pad}v = {value}.encode()" if short else f"{pad}v = {value}")
        self.length(body, pad, run, compact, short)
        if kind.items is None:
            body.append(f"{pad}w(v)")
        else:
            self.array(body, pad, kind.items, compact)

    def length(self, body: list[str], pad: str, run: list[tuple[str, str]], compact: bool, short: bool) -> None:
        if not compact:
            run.append(("h" if short else "i", "len(v)"))
        self.flush(body, pad, run)
        if compact:
            body.append(f"{pad}w(uvarint(len(v) + 1))")

    def array(self, body: list[str], pad: str, items: Kind, compact: bool) -> None:
        if items.name == "uuid":
            body.append(f"{pad}w(b''.join(v))")
            return
        if items.name in FORMATS:
            body.append(f"{pad}w(pack_array('>' + {ARRAY_FORMAT[items.name].replace('n', 'len(v)')}, *v))")
            return
        body.append(f"{pad}for x in v:")
        if items.struct is not None:
            self.struct(items.struct)
            body.append(f"{pad} encode_{items.struct.__name__}(x, w)")
            return
        if items.name == "string":
            body.append(f"{pad} x = x.encode()")
        size = (
            "uvarint(len(x) + 1)"
            if compact
            else f"{self.packer('pack', 'h' if items.name == 'string' else 'i')}(len(x))"
        )
        body.append(f"{pad} w({size}); w(x)")

    def differs(self, value: str, field: Field) -> str:
        """Returns source that is true if a value differs from its default, without creating the default."""
        if field.wire.default is None:
            return f"{value} is not None"
        if field.kind.struct is None or field.wire.default is not IMPLICIT:
            return f"{value} != {self.default(field)}"
        parts = [self.differs(f"{value}.{inner.name}", inner) for inner in fields_of(field.kind.struct)]
        return " or ".join([f"{value} is None", *parts] if self.nullable(field) else parts or ["False"])

    def tags(self, body: list[str], tagged: list[Field]) -> None:
        """Generates the tag section in ascending order, without fields that have their default (KIP-482)."""
        if not tagged:
            body.append(r" w(b'\x00')")
            return
        body.append(" tagged = []")
        for field in tagged:
            body += [f" if {self.differs(f'o.{field.name}', field)}:", "  parts = []", "  outer, w = w, parts.append"]
            run: list[tuple[str, str]] = []
            if field.kind.name in FORMATS:
                run.append((FORMATS[field.kind.name], f"o.{field.name}"))
            else:
                self.variable(body, "  ", field, run)
            self.flush(body, "  ", run)
            tag = primitives.uvarint(field.wire.tag or 0)
            body += ["  w = outer; data = b''.join(parts)", f"  tagged.append({tag!r} + uvarint(len(data)) + data)"]
        body += [" w(uvarint(len(tagged)))", " for data in tagged: w(data)"]
