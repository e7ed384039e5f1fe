"""`odradek profile`: the profiles of connection settings, without a connection."""

from __future__ import annotations

import argparse
import os
import re
from typing import Final, NamedTuple

from cli.actions import Actions, Program
from cli.exits import DONE, FAILED, fail
from cli.flags import BOOTSTRAP, OUTPUT, SET
from cli.parser import Parser
from commands.client.connecting import destination
from commands.client.settings import (
    BOOTSTRAP as BOOTSTRAP_SETTING,
)
from commands.client.settings import (
    PROFILE_VARIABLE,
    Given,
    gather,
    of_assignments,
    of_profile,
    parse_profiles,
    read_profiles,
)
from commands.errors import CommandError, misuse
from commands.files import exists, profiles_path, read_text, write_private
from commands.printing import Output, Row

DEFAULT: Final = "default"
"""The key of the profile that is used unless --profile or ODRADEK_PROFILE names another."""

NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
DEFAULT_LINE: Final = re.compile(rf"^{DEFAULT}\s*=.*$", re.MULTILINE)
FIRST_TABLE: Final = re.compile(r"^\s*\[", re.MULTILINE)

SECRETS: Final = frozenset({"sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.key"})


class Profiles(NamedTuple):
    """The profiles file: its text, and its profiles by name."""

    path: str
    text: str
    default: str | None
    names: list[str]

    @property
    def in_force(self) -> str | None:
        """The profile that commands use without --profile."""
        return os.environ.get(PROFILE_VARIABLE) or self.default


def declare(actions: Actions) -> None:
    actions.add("list", "list profiles", show_all, examples=("odradek profile list",))
    actions.add(
        "show",
        "show the settings of a profile, without its secrets",
        show,
        options=_show_options,
        examples=("odradek profile show", "odradek profile show production -o table"),
    )
    actions.add(
        "create",
        "add a profile",
        create,
        options=_create_options,
        examples=(
            "odradek profile create local -b 127.0.0.1:9092 --use",
            "odradek profile create production -b one.example:9092 -X security.protocol=SASL_SSL "
            "-X sasl.username=ana -X sasl.password=secret",
        ),
    )
    actions.add(
        "use",
        "make a profile the default",
        use,
        options=_name,
        examples=("odradek profile use production",),
    )


def run(options: argparse.Namespace) -> int:
    """Runs an action. Returns the exit code."""
    try:
        output = Output(options.output)
        options.action(options, output)
    except CommandError as error:
        return fail(error.status, error.message)
    return FAILED if output.has_errors else DONE


PROGRAM: Final = Program(run, "0 done, 1 a profile is invalid, 2 wrong arguments or an invalid file", OUTPUT.add)


def _name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def _show_options(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="default: the profile in force")


def _create_options(parser: Parser) -> None:
    _name(parser)
    BOOTSTRAP.add(parser)
    SET.add(parser, repeatable=True, help="a setting of the connection, such as client.id=NAME")
    parser.add_argument("--use", action="store_true", help="make it the default")


def show_all(_: argparse.Namespace, output: Output) -> None:
    """Prints a row for each profile."""
    profiles = _profiles()
    rows = [
        {
            "profile": name,
            "in_force": name == profiles.in_force,
            **_bootstrap(profiles.path, name),
        }
        for name in profiles.names
    ]
    output.rows(("profile", "in_force", "bootstrap"), rows, empty=f"there are no profiles in {profiles.path}")


def _bootstrap(path: str, name: str) -> Row:
    """Returns the bootstrap addresses of a profile, or its error."""
    try:
        setting = of_profile(path, name).get(BOOTSTRAP_SETTING)
    except CommandError as error:
        return {"bootstrap": None, "error": error.message}
    return {"bootstrap": setting.value if setting else None}


def show(options: argparse.Namespace, output: Output) -> None:
    """Prints a row for each setting of a profile."""
    profiles = _profiles()
    name = options.name or profiles.in_force
    if name is None:
        raise misuse(f"no profile is in force: `odradek profile use NAME` selects one of {_listed(profiles)}")
    rows = [
        {"profile": name, "setting": setting, "value": "(secret)" if setting in SECRETS else value}
        for setting, (value, _) in sorted(of_profile(profiles.path, name).items())
    ]
    output.rows(("setting", "value"), rows, title=f"profile {name}")


def use(options: argparse.Namespace, output: Output) -> None:
    """Makes a profile the default."""
    profiles = _profiles()
    if options.name not in profiles.names:
        raise misuse(f"{profiles.path} has no profile {options.name}; it has: {_listed(profiles)}")
    of_profile(profiles.path, options.name)
    _write(profiles.path, _with_default(profiles.text, options.name))
    output.rows(("profile", "result"), [{"profile": options.name, "result": "in use"}])


def create(options: argparse.Namespace, output: Output) -> None:
    """Adds a profile with the settings of the options."""
    profiles, name = _profiles(), options.name
    if name == DEFAULT or not NAME.fullmatch(name):
        raise misuse(f"profile {name}: expected a name of letters, digits, - and _, other than {DEFAULT}")
    if name in profiles.names:
        raise misuse(f"{profiles.path} already has a profile {name}")
    settings = {setting: value for setting, (value, _) in of_assignments(options.assignments).items()}
    if options.bootstrap is not None:
        settings[BOOTSTRAP_SETTING] = options.bootstrap
    if not settings:
        raise misuse("a profile needs settings: -b HOST:PORT, or -X NAME=VALUE")
    assignments = [f"{setting}={value}" for setting, value in settings.items()]
    destination(gather(Given(None, None, None, assignments), {"XDG_CONFIG_HOME": os.devnull}))  # raises for bad values
    lines = "".join(f"{setting} = {_quoted(value)}\n" for setting, value in settings.items())
    text = profiles.text and profiles.text.rstrip("\n") + "\n\n"
    text += f"[{name}]\n{lines}"
    _write(profiles.path, _with_default(text, name) if options.use else text)
    output.rows(("profile", "result"), [{"profile": name, "result": "created"}])


def _profiles() -> Profiles:
    path = profiles_path(os.environ)
    if not exists(path):
        return Profiles(path, "", None, [])
    content = read_profiles(path)
    default = content.get(DEFAULT)
    return Profiles(
        path,
        read_text(path, "profiles in"),
        None if default is None else str(default),
        [name for name, value in content.items() if isinstance(value, dict)],
    )


def _listed(profiles: Profiles) -> str:
    return ", ".join(profiles.names) or "none"


def _with_default(text: str, name: str) -> str:
    """Returns the text of a profiles file with another default, which stands before all profiles."""
    line = f'{DEFAULT} = "{name}"'
    table = FIRST_TABLE.search(text)
    head, rest = (text, "") if table is None else (text[: table.start()], text[table.start() :])
    if DEFAULT_LINE.search(head):
        return DEFAULT_LINE.sub(line, head, count=1) + rest
    return f"{line}\n\n{head}{rest}"


def _quoted(text: str) -> str:
    """Returns a string of TOML."""
    escaped = "".join(
        f"\\u{ord(letter):04x}" if ord(letter) < 32 or ord(letter) == 127 else letter
        for letter in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'


def _write(path: str, text: str) -> None:
    parse_profiles(text, path)
    write_private(path, text.encode())
