"""Tests `odradek profile`, and that a profile with a misspelt setting is refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cli.main import main


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "folder" / "profiles.toml"
    monkeypatch.setenv("ODRADEK_PROFILES", str(path))
    monkeypatch.delenv("ODRADEK_PROFILE", raising=False)
    return path


def rows(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["profile", *words, "-o", "json"]) == status
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_profiles_are_created_selected_and_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rows(capsys, "list") == []
    rows(capsys, "create", "local", "-b", "localhost:9092", "--use")
    password = 'a"b\\c\t'
    secured = ("-X", "security.protocol=SASL_SSL", "-X", "sasl.username=ana", "-X", f"sasl.password={password}")
    rows(capsys, "create", "prod", "-b", "one:1,two:2", *secured)
    assert [(row["profile"], row["in_force"], row["bootstrap"]) for row in rows(capsys, "list")] == [
        ("local", True, "localhost:9092"),
        ("prod", False, "one:1,two:2"),
    ]
    rows(capsys, "use", "prod")
    shown = {row["setting"]: row["value"] for row in rows(capsys, "show")}
    assert shown["sasl.password"] == "(secret)"
    assert shown["sasl.username"] == "ana"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    from commands.client.settings import of_profile

    assert of_profile(str(file), None)["sasl.password"].value == password


def test_comments_and_other_profiles_stay_when_the_default_changes(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.parent.mkdir()
    file.write_text('# mine\ndefault = "a"  # today\n\n[a]\nbootstrap.servers = "a:1"\n[b]\nclient.id = "b"\n')
    rows(capsys, "use", "b")
    assert file.read_text() == '# mine\ndefault = "b"\n\n[a]\nbootstrap.servers = "a:1"\n[b]\nclient.id = "b"\n'


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("create", "default", "-b", "a:1"), "expected a name"),
        (("create", "a b", "-b", "a:1"), "expected a name"),
        (("create", "there", "-b", "a:1"), "already has a profile there"),
        (("create", "new"), "needs settings"),
        (("create", "new", "-b", "a"), "HOST:PORT"),
        (("create", "new", "-X", "client.idd=1"), "did you mean client.id"),
        (("use", "gone"), "has no profile gone; it has: there"),
        (("show",), "no profile is in force"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused_and_nothing_is_written(
    file: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    file.parent.mkdir()
    file.write_text('[there]\nbootstrap.servers = "a:1"\n')
    assert main(["profile", *words]) == 2
    assert reason in capsys.readouterr().err
    assert file.read_text() == '[there]\nbootstrap.servers = "a:1"\n'


def test_a_misspelt_setting_of_a_profile_is_refused_instead_of_connecting_to_localhost(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.parent.mkdir()
    file.write_text('[a]\nbootstrap.server = "far:1"\n')
    assert main(["topic", "list", "--profile", "a"]) == 2
    err = capsys.readouterr().err
    assert "bootstrap.server: not a connection setting; did you mean bootstrap.servers?" in err
    assert f"profile a in {file}" in err
    assert [row["error"] for row in rows(capsys, "list", status=1)]
