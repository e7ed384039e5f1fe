"""The application: the table of pages and changes, logins, and the checks before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cli.exits import MISUSED, UNREACHABLE
from commands.errors import CommandError
from console.changes import CSRF, Planner, change
from console.guard import HEADERS, SAFE_METHODS, caching, host_fault, is_same, local_path, origin_fault
from console.login import TOKEN, Door
from console.pages import clients, groups, overview, records, security, shares, topics, transactions
from console.rendering import FOLDER
from console.visit import Handler, PageRequest, Terms, read_form
from console.visitors import Visitor, Visitors
from console.watching import UNREADABLE, reason_of

PAGES: Final[Mapping[str, Handler]] = {
    "/": overview.page,
    "/live/overview": overview.live,
    "/charts/throughput": overview.throughput,
    "/groups": groups.listing,
    "/live/groups": groups.live,
    "/group": groups.group,
    "/charts/lag": groups.lag_chart,
    "/live/share": shares.live,
    "/share": shares.part,
    "/share/record": shares.record,
    "/share/letters": shares.letters,
    "/transactions": transactions.listing,
    "/transactions/hanging": transactions.hanging,
    "/transaction": transactions.transaction,
    "/clients": clients.members,
    "/clients/telemetry": clients.telemetry,
    "/security": security.acls,
    "/security/users": security.users,
    "/security/quotas": security.quotas,
    "/topics": topics.listing,
    "/live/topics": topics.live,
    "/create-topic": topics.creation,
    "/topics/{topic}": topics.partitions,
    "/live/partitions/{topic}": topics.live_partitions,
    "/topics/{topic}/records": records.listing,
    "/live/records/{topic}": records.live,
    "/topics/{topic}/records/{partition}/{offset}": records.record,
    "/topics/{topic}/records/{partition}/{offset}/download": records.download,
    "/topics/{topic}/export": records.export,
    "/topics/{topic}/produce": records.production,
    "/topics/{topic}/configs": topics.configs,
    "/topics/{topic}/groups": topics.groups,
    "/topics/{topic}/operations": topics.operations,
    "/topics/{topic}/producers": topics.producers,
}
"""The pages and their live parts. They change nothing."""

CHANGES: Final[Mapping[str, Planner]] = {
    "/group/reset": groups.reset,
    "/group/delete": groups.delete,
    "/share/redrive": shares.send_back,
    "/transactions/abort": transactions.abort,
    "/clients/telemetry/subscribe": clients.subscribe,
    "/security/acls/add": security.add_acl,
    "/security/acls/delete": security.delete_acl,
    "/security/users/set": security.set_user,
    "/security/users/delete": security.delete_user,
    "/security/quotas": security.set_quota,
    "/create-topic": topics.create,
    "/topics/{topic}/configs": topics.alter,
    "/topics/{topic}/produce": records.produce,
    "/topics/{topic}/grow": topics.grow,
    "/topics/{topic}/reassign": topics.reassign,
    "/topics/{topic}/cancel-reassign": topics.cancel_reassign,
    "/topics/{topic}/trim": topics.trim,
    "/topics/{topic}/delete": topics.delete,
}
"""The forms that change the cluster, which need --allow-changes."""

FOREIGN_FORM: Final = "the form is not of a page of this login: reload the page"

STATUS: Final = {MISUSED: 400, UNREACHABLE: 503}
MISSING: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND", "TRANSACTIONAL_ID_NOT_FOUND")

Action = Callable[[Request], Awaitable[Response]]


class Entrance(NamedTuple):
    """The names and the cookie of the console, and its way to log in."""

    door: Door
    visitors: Visitors
    names: Collection[str]
    """Names of this server in the Host header, besides addresses and localhost."""
    cookie: str
    is_secure: bool
    """True if browsers connect with TLS."""


class Console:
    """The handlers of all paths."""

    def __init__(self, terms: Terms, entrance: Entrance) -> None:
        self._terms = terms
        self._entrance = entrance

    def application(self) -> ASGIApp:
        """Returns the ASGI application."""
        pages = [Route(path, self._page(handler)) for path, handler in PAGES.items()]
        changes = [Route(path, self._change(planner), methods=["POST"]) for path, planner in CHANGES.items()]
        routes = [
            Route("/login", self.login_page),
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            *pages,
            *changes,
            Route("/{path:path}", self._page(_absent)),
        ]
        return Guarded(Starlette(routes=routes), self._terms, self._entrance)

    def _page(self, handler: Handler) -> Action:
        async def serve(request: Request) -> Response:
            if TOKEN in request.query_params:
                return await self._enter(request, dict(request.query_params), _without_token(request))
            visitor = self._visitor(request)
            if visitor is None:
                return self._ask_to_log_in(request)
            visitor.cluster.look()
            return await self._answer(PageRequest(request, self._terms, visitor), handler)

        return serve

    def _change(self, planner: Planner) -> Action:
        async def serve(request: Request) -> Response:
            visitor = self._visitor(request)
            if visitor is None:
                return self._ask_to_log_in(request)
            if not self._terms.allows_changes:
                why = "read-only: start the console with --allow-changes to change the cluster"
                return self._denied(request, visitor, why)
            visit = PageRequest(request, self._terms, visitor)
            try:
                visit.form = await read_form(request)
            except CommandError as error:
                return visit.render("error.html", {"error": error.message}, status=400)
            if not is_same(visit.form.get(CSRF, ""), visitor.csrf):
                return self._denied(request, visitor, FOREIGN_FORM)
            return await self._answer(visit, lambda visit: change(visit, planner))

        return serve

    async def _answer(self, visit: PageRequest, handler: Handler) -> Response:
        """Returns a page, or the page about the error that kept it from being made."""
        try:
            return await handler(visit)
        except UNREADABLE as error:
            reason = reason_of(error)
            status = STATUS.get(error.status, 409) if isinstance(error, CommandError) else 503
            if any(code in reason for code in MISSING):
                status = 404
            return visit.render("error.html", {"error": reason}, status=status)

    def _denied(self, request: Request, visitor: Visitor, why: str) -> Response:
        visit = PageRequest(request, self._terms, visitor)
        self._terms.audit.write(visitor.user, visit.client, "denied", request.url.path, why)
        return visit.render("error.html", {"error": why}, status=403)

    def _visitor(self, request: Request) -> Visitor | None:
        return self._entrance.visitors.find(request.cookies.get(self._entrance.cookie, ""))

    # Logins.

    def _ask_to_log_in(self, request: Request) -> Response:
        """Returns the login page, or lets htmx go to it."""
        if request.headers.get("hx-request") == "true":
            return Response(status_code=401, headers={"hx-redirect": "/login"})
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return self._login_page(target if request.method in SAFE_METHODS else "/", "", 401)

    async def login_page(self, request: Request) -> Response:
        return self._login_page("/", "", 200)

    def _login_page(self, target: str, problem: str, status: int) -> Response:
        values = {"target": target, "problem": problem, "asks_password": self._entrance.door.asks_password}
        return HTMLResponse(self._terms.templates.render("login.html", values), status)

    async def login(self, request: Request) -> Response:
        try:
            fields = await read_form(request)
        except CommandError as error:
            return self._login_page("/", error.message, 400)
        return await self._enter(request, fields, local_path(fields.get("target", "/")))

    async def _enter(self, request: Request, fields: Mapping[str, str], target: str) -> Response:
        """Checks the fields of a login. Returns the way to the page, with a cookie."""
        client = request.client.host if request.client is not None else "?"
        user = fields.get("user", TOKEN)
        entrance = self._entrance
        try:
            admission = await entrance.door.admit(fields)
        except CommandError as error:
            self._terms.audit.write(user, client, "login", "", error.message)
            return self._login_page(target, error.message, 503)
        if admission is None:
            self._terms.audit.write(user, client, "login", "", "rejected")
            return self._login_page(target, "These are wrong, or no longer valid.", 401)
        key, forgotten = entrance.visitors.add(admission.user, admission.cluster)
        for visitor in forgotten:
            await entrance.door.left(visitor.cluster)
        self._terms.audit.write(admission.user, client, "login", "", "done")
        response = RedirectResponse(target, 303)
        response.set_cookie(entrance.cookie, key, httponly=True, samesite="lax", secure=entrance.is_secure, path="/")
        return response

    async def logout(self, request: Request) -> Response:
        visitor = self._visitor(request)
        if visitor is not None:
            if not is_same((await read_form(request)).get(CSRF, ""), visitor.csrf):
                return self._denied(request, visitor, FOREIGN_FORM)
            self._entrance.visitors.remove(request.cookies[self._entrance.cookie])
            await self._entrance.door.left(visitor.cluster)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(self._entrance.cookie, path="/")
        return response


async def _absent(visit: PageRequest) -> Response:
    return visit.render("error.html", {"error": f"{visit.request.url.path[:200]}: there is no such page"}, status=404)


def _without_token(request: Request) -> str:
    """Returns the request's path and query without the token, which must not stay in the browser's history."""
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != TOKEN]
    return local_path(request.url.path + (f"?{urlencode(rest)}" if rest else ""))


class Guarded:
    """Checks every request before the application sees it, and adds the headers to every response."""

    def __init__(self, application: ASGIApp, terms: Terms, entrance: Entrance) -> None:
        self._application = application
        self._terms = terms
        self._entrance = entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", caching(scope["path"], scope["query_string"]))
            await send(message)

        why = self._fault(scope)
        if why is None:
            await self._application(scope, receive, send_guarded)
            return
        client = scope["client"][0] if scope.get("client") else "?"
        self._terms.audit.write("?", client, "denied", scope["path"], why)
        await PlainTextResponse(f"{why}\n", 403)(scope, receive, send_guarded)

    def _fault(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        return host_fault(headers.get("host", ""), self._entrance.names) or origin_fault(scope["method"], headers)
