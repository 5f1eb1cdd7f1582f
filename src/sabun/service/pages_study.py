"""The pages of operators: all studies, one study, the end of a round, and files to take away."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

import sabun
from sabun.release import Release
from sabun.reports import report
from sabun.service.endpoints import closed_or_problem
from sabun.service.operators import operators
from sabun.service.picture import RoundPicture, ServerPicture, StudyPicture, server_picture, study_picture
from sabun.service.problems import Problem
from sabun.service.report_store import Round, Served, TooFew
from sabun.service.told import (
    arrived,
    days,
    ends_soon,
    headline,
    key_rows,
    name_of,
    sorts,
    spent_rows,
    state_of,
    to_do,
)
from sabun.service.visitors import Asked
from sabun.telling.words import guess, promise

__all__ = ["close", "download", "studies", "study"]


def studies(asked: Asked) -> Response:
    """The studies that this operator may look at, and whether the server is well."""
    here = asked.collecting
    allowed = [one.task for one in here.store.all_served() if asked.operator is not None and asked.operator.may("read", one)]
    picture = server_picture(here.store, retention_days=here.retention_days, allowed=allowed)
    rows = [(name_of(one), f"{asked.root}studies/{one.task}", one, state_of(one.current)) for one in picture.studies]
    return asked.page(
        "studies.html",
        here="studies",
        scripts=("live.js",),
        rows=rows,
        todo=[(words, f"{asked.root}{path}" if path else "") for words, path in _todo(asked, picture)],
        may_add=asked.operator is not None and asked.operator.may("admin", None),
        database=picture.database,
        figures=here.writer.figures,
        alive=here.writer.alive,
        version=sabun.__version__,
    )


def _todo(asked: Asked, picture: ServerPicture) -> list[tuple[str, str]]:
    """What waits for this operator, and where: rounds, and tokens that end soon."""
    store, visitor = asked.collecting.store, asked.operator
    found = [(words, f"studies/{one.task}") for one in picture.studies for words in to_do(one, store.clock())]
    if visitor is None:
        return found
    for one in operators(store):
        own = (one.study, one.name) == (visitor.study, visitor.name)
        given = "admin" in visitor.scopes and visitor.study in (None, one.study)
        if (own or given) and (words := ends_soon(one.name, one.expires - store.today)):
            found.append((words, "operators" if given else ""))
    return found


def study(asked: Asked) -> Response:
    """One study as it is now."""
    served = asked.study()
    here = asked.collecting
    picture = study_picture(here.store, served, retention_days=here.retention_days)
    shown = _round(asked, picture)
    order = asked.request.query_params.get("sort", "share")
    return asked.page(
        "study.html",
        here="",
        scripts=("live.js",),
        name=name_of(picture),
        study=picture,
        shown=shown,
        state=state_of(shown),
        headline=headline(shown),
        days=days(shown),
        arrived=arrived(shown),
        rows=key_rows(shown, picture.value_range, order),
        sorts=sorts(order, shown.number, valued=shown.valued),
        promise=promise(picture.guarantee),
        guess=guess(*picture.guarantee.cost),
        spent=spent_rows(picture),
        address=f"{asked.root}studies/{picture.task}",
        may_admin=asked.operator is not None and asked.operator.may("admin", served),
        may_close=asked.operator is not None and asked.operator.may("close", served) and shown.state == "open",
        terms=served.study.to_json(),
    )


def _round(asked: Asked, picture: StudyPicture) -> RoundPicture:
    wanted = asked.request.query_params.get("round", "")
    found = [one for one in picture.rounds if wanted == str(one.number) and one.state != "waiting"]
    return found[0] if found else picture.current


def close(asked: Asked) -> Response:
    """What becomes final when a round is closed; and, sent back, the end of the round."""
    served = asked.study("close")
    opened = _opened(asked, served)
    address = f"{asked.root}studies/{served.task}"
    if asked.request.method != "POST":
        here = asked.collecting
        picture = study_picture(here.store, served, retention_days=here.retention_days, estimates=False)
        [shown] = [one for one in picture.rounds if one.number == opened.number]
        return asked.page("close.html", name=name_of(picture), study=picture, shown=shown, address=address)
    asked.require_token()
    abandon = asked.form.get("act") == "abandon"
    if abandon and "sure" not in asked.form:
        raise Problem("bad-form")
    try:
        closed_or_problem(asked.collecting.store, served, opened.number, abandon=abandon)
    except TooFew:
        raise Problem("too-few") from None
    return RedirectResponse(f"{address}?round={opened.number}", 303)


def download(asked: Asked) -> Response:
    """A round as a file: estimates as CSV, the tally, the signed release, the release as a page that stands alone."""
    served = asked.study()
    opened = _opened(asked, served)
    name = str(asked.request.path_params["file"])
    try:
        content, kind = _file(asked, served, opened, name)
    except TooFew:
        raise Problem("too-few") from None
    saved = f"sabun-{served.task[:8]}-round-{opened.number + 1}-{name}"
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{saved}"'})


def _file(asked: Asked, served: Served, opened: Round, name: str) -> tuple[str | bytes, str]:
    store = asked.collecting.store
    if name == "estimates.csv":
        found = store.shown(served, opened.number).estimate()
        return found.to_frame(suppress=True).to_csv(index=False), "text/csv"
    if name == "counts.tally":
        return store.shown(served, opened.number).to_bytes(), "application/octet-stream"
    if name not in ("release.json", "report.html"):
        raise Problem("not-found")
    if opened.release is None:
        raise Problem("no-release")
    if name == "release.json":
        return opened.release, "application/json"
    return report(Release.from_json(opened.release), lang=asked.lang), "text/html"


def _opened(asked: Asked, served: Served) -> Round:
    opened = asked.collecting.store.round(served, int(asked.request.path_params["n"]))
    if opened is None:
        raise Problem("unknown-round")
    return opened
