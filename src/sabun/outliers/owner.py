"""`sabun outliers sensitivity`: what the owner of a table may look at and nobody else. NOT PRIVATE."""

from __future__ import annotations

from typing import Annotated

import typer

from sabun.errors import ParameterError
from sabun.telling.terminal.columns import declared, listed
from sabun.telling.terminal.options import Bounds, Columns, Json, PrivateTable, SchemaFile
from sabun.telling.terminal.output import print_json, print_line

__all__ = ["sensitivity"]

_WARNING = "NOT PRIVATE: for the owner of the table only"


def sensitivity(
    table: PrivateTable,
    radius: Annotated[float, typer.Option(help="Public distance; columns with bounds span 0 to 1, others keep their units.")],
    owner_only: Annotated[bool, typer.Option("--owner-only", help="You own the table and will show this to nobody.")] = False,
    k: Annotated[int, typer.Option("--k", help="Neighbours within the radius that an inlier needs.")] = 5,
    columns: Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also Theorem 4 of the paper, by its candidates OC and IC; exponential time.")
    ] = False,
    json: Json = False,
) -> None:
    """Show how far one record can move the number of outliers of this very table. NOT PRIVATE.

    Local sensitivities tell about the records they are computed from: nothing shown here may be published, and no noise may be
    scaled by it. What a count really uses is a smooth bound, and that stays inside `sabun outliers count`.

    Example:

        sabun datasets save wdbc tumours.csv --schema tumours.schema.json

        sabun outliers sensitivity tumours.csv --schema tumours.schema.json --radius 0.9 --owner-only
    """
    from sabun.outliers import global_bound, local_bound, local_candidates, outlier_degrees
    from sabun.outliers.paper import printed_global_bound
    from sabun.outliers.points import as_points

    if not owner_only:
        raise ParameterError(
            "owner_only must be given: what this command shows is NOT PRIVATE. Add --owner-only if you own the table; for "
            "others, release a count: sabun outliers count."
        )
    known = declared(schema, bounds)
    chosen = listed(columns, known)
    points = as_points(table, schema=known if chosen is None else known.select(chosen))
    n, d = points.shape
    found = {
        "warning": _WARNING,
        "records": n,
        "outliers": int((outlier_degrees(points, radius=radius) < k).sum()),
        "local_bound": local_bound(points, k=k, radius=radius),
        "global_bound": global_bound(n=n, d=d, k=k),
        "printed_lower_bound": printed_global_bound(n=n, d=d, k=k),
    }
    if exact:
        candidates = local_candidates(points, k=k, radius=radius)
        found |= {"OC": candidates.outliers, "IC": candidates.inliers, "theorem_4": candidates.bound}
    if json:
        print_json(found)
        return
    print_line(f"{_WARNING}.", style="bold yellow")
    print_line(f"{found['outliers']} of {n} records are outliers.")
    print_line(f"Replacing one record moves that number by at most {found['local_bound']} here.")
    print_line(
        f"In the worst table of this shape: by at most {found['global_bound']}; the paper's lower bound (11) is "
        f"{found['printed_lower_bound']}."
    )
    if exact:
        print_line(f"Theorem 4: max(OC = {found['OC']}, IC = {found['IC']}) + 1 = {found['theorem_4']}.")
