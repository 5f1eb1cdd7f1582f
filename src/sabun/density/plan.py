"""What a release will cost and how precise it can be, before any private record is touched."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sabun.errors import InternalError
from sabun.privacy.amounts import plain

if TYPE_CHECKING:
    from sabun.density.method import Method

__all__ = ["DensityPlan", "forecast"]


@dataclass(frozen=True, kw_only=True)
class DensityPlan:
    """Cost and expected error of `method="rkhs"`, from public quantities only.

    All errors are distances between mean embeddings, where two tables without any overlap are about 1 apart.

    Attributes:
        epsilon: Cost.
        delta: Cost.
        relation: What the cost protects.
        private_rows: The number of private rows the plan is for.
        public_rows: The number of public rows.
        rank: How many coordinates will be released, beside the share of rows off the public support.
        noise_sd: Standard deviation of the noise in each of them.
        noise_error: Expected length of the noise.
        private_sampling_error: Expected distance between the private table and the population behind it, without any privacy.
        public_sampling_error: The same for the public table.
        paper_noise_sd: Noise on each coordinate of h that the paper's Laplace mechanism needs at the same epsilon.
    """

    epsilon: Fraction
    delta: Fraction
    relation: str
    private_rows: int
    public_rows: int
    rank: int
    noise_sd: float
    noise_error: float
    private_sampling_error: float
    public_sampling_error: float
    paper_noise_sd: float

    def __str__(self) -> str:
        cost = f"epsilon = {plain(self.epsilon)}" + (f", delta = {plain(self.delta)}" if self.delta else "")
        times = self.noise_error / max(self.private_sampling_error, 1e-300)
        return (
            f"Costs {cost} ({self.relation}) for {self.private_rows} private and {self.public_rows} public rows.\n"
            f"Releases {self.rank} numbers and the uncovered share, "
            f"with noise of standard deviation {self.noise_sd:.3g} each.\n"
            f"The noise is expected to be {times:.2g} times the private table's own sampling error "
            f"({self.noise_error:.3g} against {self.private_sampling_error:.3g}); "
            f"the public table's is {self.public_sampling_error:.3g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {**dataclasses.asdict(self), "epsilon": str(self.epsilon), "delta": str(self.delta)}


def forecast(plan: Method, *, n_records: int) -> DensityPlan:
    """What that plan, an embedding, would cost and achieve on a private table of that size."""
    from sabun.density.rkhs import Embedding

    if not isinstance(plan, Embedding):
        raise InternalError("only an embedding has a forecast.")
    rank, noise = plan.rank(n_records), plan.noise_sd(n_records)
    spread = float(plan.variances.sum())
    return DensityPlan(
        epsilon=plan.target.epsilon,
        delta=plan.target.delta or Fraction(0),
        relation=plan.target.relation,
        private_rows=n_records,
        public_rows=len(plan.points),
        rank=rank,
        noise_sd=noise,
        noise_error=noise * math.sqrt(rank),
        private_sampling_error=math.sqrt(spread / n_records),
        public_sampling_error=math.sqrt(spread / len(plan.points)),
        paper_noise_sd=math.sqrt(2) * plan.kernel.size / (n_records * float(plan.target.epsilon)),
    )
