"""Tests the checks before every page: host, origin, login, and the content security policy."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from console import app
from console.guard import host_fault, local_path, origin_fault
from odradek.testing import Broker
from tests.console.browser import Browser, ConsoleProcess, console_line, running_console


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "10.1.2.3", "kafka.example"]
)
def test_an_address_and_a_name_of_this_server_may_pass(host: str) -> None:
    assert host_fault(host, {"kafka.example"}) is None


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1.evil.example", "localhost:80:80", "[::1", "kafka.example:x"]
)
def test_another_host_is_rejected(host: str) -> None:
    assert host_fault(host, {"kafka.example"}) is not None


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:1", "origin": "http://evil.example"},
        {"host": "localhost:1", "origin": "http://localhost:2"},
        {"host": "localhost:1", "origin": "null"},
        {"host": "localhost:1", "sec-fetch-site": "cross-site"},
        {"host": "localhost:1", "sec-fetch-site": "same-site", "origin": "http://localhost:1"},
    ],
)
def test_a_form_of_another_site_is_rejected(headers: dict[str, str]) -> None:
    assert origin_fault("POST", headers) is not None
    assert origin_fault("GET", headers) is None


def test_a_form_of_this_site_may_pass() -> None:
    assert origin_fault("POST", {"host": "localhost:1", "origin": "http://localhost:1"}) is None
    assert (
        origin_fault("POST", {"host": "a.example", "origin": "https://a.example", "sec-fetch-site": "same-origin"})
        is None
    )


@pytest.mark.parametrize("target", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\nb"])
def test_a_login_never_leads_to_another_host(target: str) -> None:
    assert local_path(target) == "/"
    assert local_path("/topics?q=a") == "/topics?q=a"


def path_of(route: str) -> str:
    """Returns a path of a route."""
    return re.sub(r"\{\w+\}", "0", route)


@pytest.mark.parametrize("route", app.PAGES)
def test_without_a_token_a_page_asks_to_log_in(console: ConsoleProcess, route: str) -> None:
    answer = console.browser(logged_in=False).get(path_of(route))
    assert answer.status == 401
    assert 'name="token"' in answer.text


@pytest.mark.parametrize("route", app.CHANGES)
def test_no_change_without_a_login_the_secret_and_the_right_to_change(
    console: ConsoleProcess, reading_console: ConsoleProcess, audit: Path, route: str
) -> None:
    path, fields = path_of(route), {"csrf": "0" * 64, "confirm": "yes"}
    assert console.browser(logged_in=False).post(path, fields).status == 401
    reader = reading_console.browser()
    answer = reader.change(path, confirm="yes")
    assert (answer.status, "--allow-changes" in answer.words) == (403, True)
    browser = console.browser()
    foreign = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert browser.post(path, {**fields, "csrf": browser.csrf}, foreign).status == 403
    assert browser.post(path, fields).status == 403
    last = json.loads(audit.read_text().splitlines()[-1])
    assert (last["action"], last["target"], last["user"]) == ("denied", path, "token")


@pytest.mark.parametrize("token", ["", "0" * 48, "\u00e9"])
def test_a_wrong_token_is_rejected(console: ConsoleProcess, token: str) -> None:
    stranger = console.browser(logged_in=False)
    assert stranger.post("/login", {"token": token}).status == 401
    assert not stranger.cookies


def test_the_token_becomes_a_cookie_and_leaves_the_url(console: ConsoleProcess) -> None:
    stranger = console.browser(logged_in=False)
    answer = stranger.get(console.url.removeprefix(console.base) + "&q=a")
    assert (answer.status, answer.headers["location"]) == (303, "/?q=a")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(answer.headers["set-cookie"].split("; "))
    assert stranger.get("/").status == 200


def test_logging_out_ends_the_login(console: ConsoleProcess) -> None:
    browser = console.browser()
    cookies = dict(browser.cookies)
    assert browser.change("/logout").status == 200
    browser.cookies = cookies
    assert browser.get("/").status == 401


def test_logging_out_ends_live_pages(console: ConsoleProcess) -> None:
    browser = console.browser()
    with browser.events("/live/overview") as events:
        next(events)
        browser.change("/logout")
        assert len(list(events)) <= 1


def test_a_long_name_is_cut_in_the_audit_log(console: ConsoleProcess, audit: Path) -> None:
    console.browser(logged_in=False).post("/login", {"token": "x", "user": "u" * 100_000})
    last = audit.read_text().splitlines()[-1]
    assert "rejected" in last
    assert len(last) < 2000


def test_a_rebound_name_is_rejected_even_with_the_cookie(browser: Browser) -> None:
    answer = browser.get("/", {"Host": "evil.example"})
    assert answer.status == 403
    assert "--name evil.example" in answer.text


def test_a_name_of_the_command_line_may_pass(broker: Broker) -> None:
    with running_console(broker.bootstrap, "--name", "Kafka.example") as named:
        assert named.browser().get("/", {"Host": "kafka.example"}).status == 200


def test_a_form_of_another_site_does_nothing(browser: Browser) -> None:
    answer = browser.post(
        "/logout", {"csrf": browser.csrf}, {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status == 403
    assert browser.get("/").status == 200


@pytest.mark.parametrize("path", ["/", "/login", "/static/console.css", "/nothing-here"])
def test_every_response_has_the_policy(browser: Browser, path: str) -> None:
    headers = browser.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "same-origin"  # else browsers send forms with the Origin null


def test_a_page_that_is_none_says_so(browser: Browser) -> None:
    answer = browser.get("/nothing-here")
    assert (answer.status, "/nothing-here: there is no such page" in answer.words) == (404, True)


def test_only_static_files_are_kept_by_the_browser(browser: Browser) -> None:
    version = re.search(r"/static/console.css\?v=\w{12}", browser.get("/").text)
    assert version is not None
    assert "immutable" in browser.get(version[0]).headers["cache-control"]
    for path in ("/", "/topics?v=1", "/static/console.css", "/login"):
        assert browser.get(path).headers["cache-control"] == "no-store"


def test_a_form_that_is_too_large_is_rejected(browser: Browser) -> None:
    assert browser.post("/create-topic", {"topic": "x" * 5_000_000}).status == 400


def test_users_log_in_with_their_password(tmp_path: Path) -> None:
    with (
        Broker(users={"ana": "secret-of-ana"}) as secured,
        running_console(
            secured.bootstrap, "--login", "-X", "security.protocol=SASL_PLAINTEXT", errors=tmp_path / "log"
        ) as console,
    ):
        stranger = Browser(console.base)
        assert 'name="password"' in stranger.get("/").text
        assert stranger.post("/login", {"user": "ana", "password": "wrong"}).status == 401
        assert stranger.post("/login", {"user": "ana", "password": "secret-of-ana"}).status == 303
        assert "Log out ana" in stranger.get("/").text
        lines = (tmp_path / "log").read_text()
        assert '"user": "ana"' in lines
        assert "secret" not in lines


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--listen", "0.0.0.0:0"], "--tls-certificate"),
        (["--login"], "security.protocol"),
        (["--tls-certificate", "a.pem"], "belong together"),
        (["--listen", "nowhere"], "HOST:PORT"),
    ],
)
def test_an_unsafe_or_wrong_start_is_rejected(options: list[str], reason: str) -> None:
    ended = subprocess.run(console_line(*options), capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert reason in ended.stderr


def test_a_missing_package_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('gone', name='uvicorn')")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        console_line(), capture_output=True, text=True, timeout=30, env={**os.environ, "PYTHONPATH": paths}
    )
    assert (ended.returncode, ended.stderr) == (
        1,
        "odradek: `odradek console` needs uvicorn: pip install 'odradek[console]'\n",
    )


def test_it_stops_with_open_live_pages(broker: Broker) -> None:
    with running_console(broker.bootstrap) as console, console.browser().events("/live/overview"):
        console.process.send_signal(signal.SIGTERM)
        assert console.process.wait(10) in (0, -signal.SIGTERM)
