"""What the owner of a table may look at, never release: exact degrees, exact count, bounds."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sabun.errors import ParameterError
from sabun.outliers.points import as_points, check_k, check_radius
from sabun.outliers.sensitivity import local_bound, outlier_degrees
from sabun.records import Schema

__all__ = ["OwnerView", "inspect_outliers", "suggest_radius"]

_WARNING = "NOT PRIVATE: for the owner of the table only"


class OwnerView:
    """Exact facts about a private table. NOT PRIVATE: it cannot be pickled, serialised or put into a release.

    Attributes:
        degrees: Neighbours of each record within the radius.
        count: The exact number of outliers.
        outliers: Their row numbers.
        local_bound: How far one replacement can move the count.
    """

    def __init__(self, *, degrees: NDArray[np.int64], k: int, bound: int) -> None:
        self.degrees = degrees
        self.k = k
        self.local_bound = bound

    @property
    def outliers(self) -> NDArray[np.int64]:
        """Row numbers of the outliers."""
        return np.flatnonzero(self.degrees < self.k)

    @property
    def count(self) -> int:
        """The exact number of outliers."""
        return int((self.degrees < self.k).sum())

    def plot(self) -> Any:
        """A matplotlib figure: how many records have how many neighbours, up to a few times k."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        top = 6 * self.k
        axes.hist(np.minimum(self.degrees, top), bins=[place - 0.5 for place in range(top + 2)], color="#4c72b0")
        axes.axvline(self.k - 0.5, color="#c44e52")
        axes.set(xlabel=f"neighbours within the radius ({top} or more in the last bar)", ylabel="records", title=_WARNING)
        return figure

    def __repr__(self) -> str:
        return f"<OwnerView {_WARNING}: {self.count} outliers of {len(self.degrees)} records>"

    def __str__(self) -> str:
        return (
            f"{_WARNING}.\n{self.count} of {len(self.degrees)} records have fewer than {self.k} neighbours; "
            f"replacing one record moves that number by at most {self.local_bound}."
        )

    def __reduce__(self) -> NoReturn:
        raise ParameterError(f"{_WARNING}; it must not be stored. Release a private count with OutlierCount instead.")


def inspect_outliers(X: object, *, k: int, radius: float, schema: Schema | None = None) -> OwnerView:
    """Exact facts for the owner's eyes. NOT PRIVATE.

    Args:
        X: A table of finite numbers, or anything the schema describes.
        k: Neighbours an inlier needs.
        radius: The radius.
        schema: Public bounds, as in `OutlierCount`.

    Example:
        >>> inspect_outliers([[0.0], [0.5], [9.0]], k=1, radius=1)
        <OwnerView NOT PRIVATE: for the owner of the table only: 1 outliers of 3 records>
    """
    neighbours, distance = check_k(k), check_radius(radius)
    points = as_points(X, schema=schema)
    degrees = outlier_degrees(points, radius=distance)
    return OwnerView(degrees=degrees, k=neighbours, bound=local_bound(points, k=neighbours, radius=distance))


def suggest_radius(reference: object, *, k: int, share: float = 0.01, schema: Schema | None = None) -> float:
    """The radius at which about that share of a PUBLIC reference table are outliers.

    Never pass the private table: the radius would be a second, unpaid look at it.

    Args:
        reference: A public table of the same kind, with more than k rows.
        k: Neighbours an inlier needs.
        share: Share of outliers, above 0 and below 1.
        schema: Public bounds, as in `OutlierCount`.

    Example:
        >>> suggest_radius([[0.0], [1.0], [2.0], [3.0], [9.0]], k=1, share=0.2)
        1.0
    """
    neighbours = check_k(k)
    if not 0 < share < 1:
        raise ParameterError(f"share must be above 0 and below 1; got {share!r}.")
    points = as_points(reference, schema=schema)
    if len(points) <= neighbours:
        raise ParameterError(f"reference must have more than k rows; got {len(points)}.")
    from scipy.spatial import cKDTree

    reach = np.sort(cKDTree(points).query(points, k=neighbours + 1)[0][:, -1])
    place = min(len(reach) - 1, int(np.ceil((1 - share) * len(reach))) - 1)
    return max(float(reach[place]), 1e-150)
