"""Configuration options. A declaration gives attribute, type, default, bounds, DescribeConfigs row and docs row.

    class LogConfig(Config):
        segment_bytes = option("segment.bytes", INT, 1 << 30, at_least=1 << 20, doc="Size at which a segment rolls.")

    LogConfig().segment_bytes                                # 1073741824
    LogConfig.parse({"segment.bytes": "1"})                  # ConfigError, worded as Kafka words it

Source: org.apache.kafka.common.config.ConfigDef of Apache Kafka 4.3 (types, bounds, spelling of values and errors).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import ClassVar, Final, Generic, Literal, Self, TypedDict, TypeVar, Unpack, overload

from protocol.numbers import whole_number

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Importance = Literal["high", "medium", "low"]
UpdateMode = Literal["read-only", "per-broker", "cluster-wide"]
READ_ONLY: Final[UpdateMode] = "read-only"
PER_BROKER: Final[UpdateMode] = "per-broker"
CLUSTER_WIDE: Final[UpdateMode] = "cluster-wide"

JAVA_SPACE: Final = "".join(map(chr, range(33)))  # what Java's String.trim() takes away


class ConfigSource(IntEnum):
    """The source of a config's value, as DescribeConfigs and CreateTopics return it
    (org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource)."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigError(ValueError):
    """An invalid configuration. The text is for the operator; `name` is the invalid option."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.name = name


def invalid(name: str, value: object, problem: str) -> ConfigError:
    """Returns the error for an invalid value of an option, with Kafka's text (ConfigException)."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {problem}", name=name)


class Type(Generic[T_co]):
    """The type of an option: parses and writes its values, and has the byte that DescribeConfigs returns
    (ConfigType)."""

    __slots__ = ("code", "name", "read", "sensitive", "write")

    def __init__(
        self,
        name: str,
        code: int,
        read: Callable[[str], T_co],
        write: Callable[[object], str] = str,
        sensitive: bool = False,
    ) -> None:
        self.name = name
        self.code = code
        self.read = read
        self.write = write
        self.sensitive = sensitive


def _boolean(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return word == "true"


def _integer(name: str, bits: int) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def read(text: str) -> int:
        value = whole_number(text)
        if value is None or not -limit <= value < limit:
            raise ValueError(f"Not a number of type {name}")
        return value

    return read


def _double(text: str) -> float:
    match = re.fullmatch(r"([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?", text)
    if match is None:
        raise ValueError("Not a number of type DOUBLE")
    return float(match[1])


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def double_to_text(value: object) -> str:
    """Returns a double as Java's Double.toString spells it: 0.5, 1.0E7, 1.7976931348623157E308."""
    number = float(value)  # type: ignore[arg-type]  # Type.write takes any object, but DOUBLE options have only numbers
    if number != number or number in (float("inf"), float("-inf")):
        return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number) if "e" not in repr(number) else f"{number:f}"
    sign, digits, exponent = _decimal(number)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(number: float) -> tuple[str, str, int]:
    """Returns the sign, the shortest significant digits, and the exponent of the first digit."""
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return "-" if number < 0 else "", digits.rstrip("0") or "0", leading + int(exponent or 0)


def _joined(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _lower(value: object) -> str:
    return str(value).lower()


BOOLEAN: Final = Type("boolean", 1, _boolean, _lower)
STRING: Final = Type("string", 2, str)
INT: Final = Type("int", 3, _integer("INT", 32))
SHORT: Final = Type("short", 4, _integer("SHORT", 16))
LONG: Final = Type("long", 5, _integer("LONG", 64))
DOUBLE: Final = Type("double", 6, _double, double_to_text)
LIST: Final = Type("list", 7, _list, _joined)
CLASS: Final = Type("class", 8, str)
PASSWORD: Final = Type("password", 9, str, sensitive=True)
UNKNOWN_TYPE: Final = 0  # the type that DescribeConfigs returns for an unknown option


class Check:
    """A rule other than bounds: `valid` describes valid values, `problem` returns the error in a value, or None."""

    __slots__ = ("problem", "valid")

    def __init__(self, valid: str, problem: Callable[[str, object], str | None]) -> None:
        self.valid = valid
        self.problem = problem


class OptionRules(TypedDict, total=False):
    """The rules that an option declares besides its type and default."""

    at_least: float
    at_most: float
    one_of: tuple[str, ...]
    check: Check
    may_be_empty: bool  # LIST and STRING: False rejects an empty value
    distinct: bool  # LIST: False keeps repeated and empty entries
    importance: Importance
    update: UpdateMode
    internal: bool
    synonyms: tuple[str, ...]  # all names that may set this option, its own included, highest precedence first
    note: str


class Option:
    """A declared option. Its values have its type, or may be None if its default is None. A class that declares it
    names it: `num_partitions` is num.partitions.
    """

    __slots__ = ("attribute", "default", "doc", "importance", "internal", "name", "rules", "synonyms", "type", "update")

    def __init__(self, type: Type[object], default: object, doc: str, rules: OptionRules, name: str = "") -> None:
        self.name = name
        self.attribute = name.replace(".", "_")
        self.type = type
        self.default = default
        self.doc = doc
        self.importance = rules.get("importance", "medium")
        self.update = rules.get("update", READ_ONLY)
        self.internal = rules.get("internal", False)
        self.synonyms = rules.get("synonyms", ())
        self.rules = rules

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute, self.name = attribute, attribute.replace("_", ".")

    def parse(self, text: str) -> object:
        """Parses a value. Raises ConfigError."""
        try:
            value = self.type.read(text.strip(JAVA_SPACE))
        except ValueError as error:
            raise invalid(self.name, text, str(error)) from None
        if isinstance(value, tuple):
            return self._checked_list(value)
        self._refuse(value, self._problem(value))
        return value

    def text(self, value: object) -> str | None:
        """Returns a value as Kafka writes it in responses. None stays None."""
        return None if value is None else self.type.write(value)

    def _checked_list(self, value: tuple[str, ...]) -> tuple[str, ...]:
        rules = self.rules
        if not value and not rules.get("may_be_empty", True):
            valid = f"[{', '.join(rules['one_of'])}]" if "one_of" in rules else "any non-empty value"
            problem = f"Configuration '{self.name}' must not be empty. Valid values include: {valid}"
            raise ConfigError(problem, name=self.name)
        if rules.get("distinct", True):
            value = tuple(dict.fromkeys(value))
            if "" in value:
                raise ConfigError(f"Configuration '{self.name}' values must not be empty.", name=self.name)
        for entry in value:
            self._refuse(entry, self._not_one_of(entry))
        if (check := rules.get("check")) is not None:
            self._refuse(f"[{', '.join(value)}]", check.problem(self.name, value))
        return value

    def _problem(self, value: object) -> str | None:
        rules = self.rules
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if (low := rules.get("at_least")) is not None and value < low:
                return f"Value must be at least {low}"
            if (high := rules.get("at_most")) is not None and value > high:
                return f"Value must be no more than {high}"
        if value == "" and not rules.get("may_be_empty", True):
            return "String must be non-empty"
        check = rules.get("check")
        return self._not_one_of(value) or (check.problem(self.name, value) if check is not None else None)

    def _not_one_of(self, value: object) -> str | None:
        words = self.rules.get("one_of")
        return None if words is None or value in words else f"String must be one of: {', '.join(words)}"

    def _refuse(self, value: object, problem: str | None) -> None:
        if problem is not None:
            raise invalid(self.name, value, problem)


@overload
def option(type: Type[T], default: None, doc: str, **rules: Unpack[OptionRules]) -> T | None: ...
@overload
def option(type: Type[T], default: T, doc: str, **rules: Unpack[OptionRules]) -> T: ...
def option(type: Type[object], default: object, doc: str, **rules: Unpack[OptionRules]) -> object:
    """Declares an option in the body of a Config class. For a type checker, the attribute has the type of its value."""
    return Option(type, default, doc, rules)


class Config:
    """Immutable values of a set of options, as plain instance attributes, so that a read is a single dict look-up.

    `Config()` has the defaults; keyword arguments set values by attribute, unchecked (for tests and derived configs);
    `parse` reads texts under Kafka's names and checks them. A class attribute is the default.
    """

    KIND: ClassVar[str] = ""  # in "Unknown topic config name: …"
    OPTIONS: ClassVar[dict[str, Option]] = {}
    DEFAULTS: ClassVar[dict[str, object]] = {}
    explicit: Mapping[str, str]
    """The texts that were passed to `parse`, by option name."""

    def __init_subclass__(cls) -> None:
        inherited = (vars(base).get("OPTIONS", {}) for base in reversed(cls.__mro__))
        cls.OPTIONS = {name: declared for options in inherited for name, declared in options.items()}
        for attribute, declared in [*vars(cls).items()]:
            if isinstance(declared, Option):
                cls.OPTIONS[declared.name] = declared
                setattr(cls, attribute, declared.default)
        cls.DEFAULTS = {declared.attribute: declared.default for declared in cls.OPTIONS.values()}

    def __init__(self, **values: object) -> None:
        unknown = values.keys() - self.DEFAULTS.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(sorted(unknown))}")
        self._become({**self.DEFAULTS, **values}, {})

    def _become(self, values: dict[str, object], explicit: Mapping[str, str]) -> None:
        self.__dict__.update(values)
        self.__dict__["explicit"] = explicit
        self.__dict__.update(self._derived())

    def _derived(self) -> dict[str, object]:
        """Returns attributes that are computed from options."""
        return {}

    @classmethod
    def parse(cls, texts: Mapping[str, str], base: Mapping[str, object] | None = None) -> Self:
        """Returns a config of `texts`, by option name. Other options have the values of `base`, by attribute, or else
        the defaults.

        Raises ConfigError for an unknown name, an invalid value, or values that contradict each other.
        """
        return cls.build(cls.values(texts), texts, base)

    @classmethod
    def build(
        cls,
        values: Mapping[str, object],
        texts: Mapping[str, str],
        base: Mapping[str, object] | None = None,
        *,
        check: bool = True,
    ) -> Self:
        """Returns a config of parsed values. Raises ConfigError if they contradict each other."""
        config = cls.__new__(cls)
        config._become({**(cls.DEFAULTS if base is None else base), **values}, dict(texts))
        for problem in config.contradictions() if check else ():
            raise problem
        return config

    @classmethod
    def values(cls, texts: Mapping[str, str]) -> dict[str, object]:
        """Parses `texts`, and returns values by attribute. Raises ConfigError."""
        values = {}
        for name, text in texts.items():
            declared = cls.OPTIONS.get(name)
            if declared is None:
                raise ConfigError(f"Unknown {cls.KIND} config name: {name}", name=name)
            values[declared.attribute] = declared.parse(text)
        return values

    def contradictions(self) -> Iterable[ConfigError]:
        """Yields the contradictions between options whose values are each valid."""
        return ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} does not change: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(self.explicit.items()))))

    def __repr__(self) -> str:
        values = {
            declared.attribute: "[hidden]" if declared.type.sensitive else vars(self)[declared.attribute]
            for declared in self.OPTIONS.values()
            if vars(self)[declared.attribute] != declared.default
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
