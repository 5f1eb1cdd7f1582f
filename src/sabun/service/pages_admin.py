"""What administrators do by form, and others by `sabun keyvalue operator`, `tickets` and `serve`: tokens, tickets, studies."""

from __future__ import annotations

from datetime import date

from starlette.responses import RedirectResponse, Response

from sabun.errors import ParameterError, SabunError
from sabun.keyvalue import Study
from sabun.service.enrolment import issue_tickets
from sabun.service.operators import MOST_DAYS, SCOPES, add_operator, operators, revoke_operator
from sabun.service.picture import EPOCH, study_picture
from sabun.service.problems import Problem
from sabun.service.report_store import Served
from sabun.service.told import name_of
from sabun.service.visitors import Asked

__all__ = ["new_study", "people", "tickets"]

_EVERY = "every"
_MOST_TICKETS = 10_000
_DIGITS = 9


def people(asked: Asked) -> Response:
    """Who has a token; a form that gives one, which is shown this once, and forms that end one."""
    known = _administered(asked)
    token = wrong = ""
    if asked.request.method == "POST":
        asked.require_token()
        served = _chosen(asked, known)
        name = asked.form.get("name", "").strip()
        try:
            if "end" in asked.form:
                revoke_operator(asked.collecting.store, name, served=served)
                return RedirectResponse(f"{asked.root}operators", 303)
            scopes = [scope for scope in SCOPES if scope in asked.form]
            token = add_operator(
                asked.collecting.store, name, scopes=scopes, served=served, days=_whole(asked, "days", default=MOST_DAYS)
            )
        except ParameterError as error:
            wrong = str(error)
    return asked.page(
        "operators.html",
        status=400 if wrong else 200,
        here="operators",
        rows=_rows(asked, known),
        studies=[(served.task, _name(asked, served)) for served in known.values() if served is not None],
        everywhere=None in known.values(),
        scopes=SCOPES,
        most_days=MOST_DAYS,
        made=token,
        wrong=wrong,
    )


def _administered(asked: Asked) -> dict[int, Served | None]:
    """What this operator gives tokens for: one study; or every study by its number, and under 0 all of them.

    Raises:
        Problem: They give none.
    """
    if asked.operator is None:
        raise Problem("forbidden")
    found: dict[int, Served | None] = {
        served.number: served for served in asked.collecting.store.all_served() if asked.operator.may("admin", served)
    }
    if asked.operator.may("admin", None):
        found[0] = None
    if not found:
        raise Problem("forbidden")
    return found


def _chosen(asked: Asked, known: dict[int, Served | None]) -> Served | None:
    task = asked.form.get("study", "")
    for number, served in known.items():
        if task == (_EVERY if number == 0 else served.task if served is not None else ""):
            return served
    raise Problem("forbidden")


def _rows(asked: Asked, known: dict[int, Served | None]) -> list[tuple[str, str, str, str, str, bool]]:
    """Name, what they may do, for which study (its name, and as the form says it), until when, and whether that is over."""
    rows = []
    for one in operators(asked.collecting.store):
        if (one.study or 0) in known:
            served = known[one.study or 0]
            study, task = ("", _EVERY) if served is None else (_name(asked, served), served.task)
            until = date.fromordinal(EPOCH.toordinal() + one.expires).isoformat()
            rows.append((one.name, ", ".join(one.scopes), study, task, until, asked.collecting.store.today >= one.expires))
    return rows


def _name(asked: Asked, served: Served) -> str:
    return name_of(study_picture(asked.collecting.store, served, retention_days=0, estimates=False))


def tickets(asked: Asked) -> Response:
    """New tickets as a file with one in each line; it is the only time that they are seen."""
    served = asked.study("admin")
    asked.require_token()
    count = _whole(asked, "count", default=0)
    if not served.tickets or not 1 <= count <= _MOST_TICKETS:
        raise Problem("bad-form")
    issued = "".join(f"{ticket}\n" for ticket in issue_tickets(asked.collecting.store, served, count))
    headers = {"Content-Disposition": f'attachment; filename="sabun-{served.task[:8]}-tickets.txt"'}
    return Response(issued, media_type="text/plain", headers=headers)


def new_study(asked: Asked) -> Response:
    """The form for a study's terms, and the study that is served from then on."""
    if asked.operator is None or not asked.operator.may("admin", None):
        raise Problem("forbidden")
    wrong = ""
    if asked.request.method == "POST":
        asked.require_token()
        try:
            served = asked.collecting.store.register(_described(asked), tickets="tickets" in asked.form)
        except SabunError as error:
            wrong = str(error)
        else:
            return RedirectResponse(f"{asked.root}studies/{served.task}", 303)
    return asked.page("new_study.html", status=400 if wrong else 200, form=asked.form, wrong=wrong)


def _described(asked: Asked) -> Study:
    """The study that the form describes.

    Raises:
        ParameterError: It describes none.
    """
    form = {name: value.strip() for name, value in asked.form.items()}
    return Study(
        keys=[line.strip() for line in form.get("keys", "").splitlines() if line.strip()],
        epsilon=form.get("epsilon", ""),
        value_range=(form.get("least") or "-1", form.get("most") or "1"),
        min_batch=_whole(asked, "min_batch", default=50),
        rounds=_whole(asked, "rounds", default=1),
        not_before=_day("not_before", form.get("not_before", "")),
        not_after=_day("not_after", form.get("not_after", "")),
    )


def _whole(asked: Asked, name: str, *, default: int) -> int:
    """A whole number of the form; 0, which no rule allows, for what is none."""
    text = asked.form.get(name, "").strip()
    if not text:
        return default
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0


def _day(name: str, text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise ParameterError(f"{name} must be a day such as 2027-01-31; it is not.") from None
