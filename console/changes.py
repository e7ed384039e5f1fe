"""Changes of the cluster: a form makes a plan, the page shows its effect, and a second form carries it out."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from starlette.responses import RedirectResponse, Response

from commands.errors import CommandError
from commands.printing import Row
from console.visit import PageRequest

CONFIRM: Final = "confirm"
TYPED: Final = "typed"
CSRF: Final = "csrf"
OWN_FIELDS: Final = frozenset({CONFIRM, TYPED, CSRF})
"""The fields of the second form, which are not part of the plan."""


class Plan(NamedTuple):
    """A change that can be carried out."""

    action: str
    """The name of the change in the audit log."""
    target: str
    title: str
    carry_out: Callable[[], Awaitable[Sequence[Row]]]
    """Changes the cluster. Returns the results; a row with `error` failed."""
    back: str
    """The path of the page that follows."""
    columns: Sequence[str] = ()
    rows: Sequence[Row] = ()
    """The effect, as a table."""
    command: Sequence[str] = ()
    """The command line that does the same."""
    typed: str = ""
    """The name that the user must type, because the change can't be undone."""
    fields: Mapping[str, str] = MappingProxyType({})
    """Fields that replace the form's, so that exactly the change that was shown is carried out."""
    note: str = ""
    is_small: bool = False
    """True if the change is carried out without showing it first."""


Planner: TypeAlias = Callable[[PageRequest], Awaitable[Plan]]


async def change(visit: PageRequest, planner: Planner) -> Response:
    """Shows the plan of a form, or carries it out if the form confirms it."""
    plan = await planner(visit)
    is_confirmed = plan.is_small or bool(visit.field(CONFIRM, required=False))
    if not is_confirmed:
        return _show(visit, plan)
    if plan.typed and visit.field(TYPED, required=False) != plan.typed:
        return _show(visit, plan, problem=f"Type {plan.typed} to confirm.", status=400)
    return await _carry_out(visit, plan)


async def _carry_out(visit: PageRequest, plan: Plan) -> Response:
    try:
        results = list(await plan.carry_out())
    except CommandError as error:
        _audit(visit, plan, error.message)
        raise
    except BaseException as error:
        _audit(visit, plan, f"unknown: {error!r}")
        raise
    errors = [str(row["error"]) for row in results if row.get("error")]
    _audit(visit, plan, "; ".join(errors) or "done")
    if errors:
        return _show(visit, plan, problem="; ".join(errors), results=results, status=409)
    await visit.watched.refresh()
    visit.visitor.notice = f"{plan.title}: {next((row['notice'] for row in results if row.get('notice')), 'done')}"
    return RedirectResponse(plan.back, 303)


def _audit(visit: PageRequest, plan: Plan, result: str) -> None:
    effect = [dict(row) for row in plan.rows]
    visit.terms.audit.write(visit.visitor.user, visit.client, plan.action, plan.target, result, effect=effect)


def _show(
    visit: PageRequest, plan: Plan, *, problem: str = "", results: Sequence[Row] = (), status: int = 200
) -> Response:
    kept = {name: value for name, value in visit.form.items() if name not in OWN_FIELDS}
    rows = results or plan.rows
    columns = [*plan.columns, *(name for name in ("result", "error") if any(row.get(name) for row in rows))]
    values = {
        "plan": plan,
        "rows": rows,
        "columns": list(dict.fromkeys(columns)),
        "fields": {**kept, **plan.fields},
        "command": shlex.join(plan.command),
        "problem": problem,
    }
    return visit.render("plan.html", values, status=status)
