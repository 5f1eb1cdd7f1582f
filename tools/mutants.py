"""Breaks the privacy of a copy of the package in one line at a time, then asks the tests whether they notice.

    python tools/mutants.py              every mutant (about a quarter of an hour)
    python tools/mutants.py density      those of one room
    python tools/mutants.py --list       what there is

Only tests of behaviour are asked: that the digest in a proof no longer fits its module is a second net, shown beside the
result. Survivors are named at the end, and the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 900
"""Seconds one set of tests may take; a mutant that makes them hang longer has not been noticed by anybody."""

TESTS = {
    "outliers": ("contracts/test_calibration_outliers.py", "outliers/test_calibration.py", "outliers"),
    "density": ("contracts/test_calibration_density.py", "density/test_kernel.py", "density"),
    "regression": ("contracts/test_calibration_regression.py", "regression"),
    "learning": (
        "contracts/test_calibration_learning.py",
        "learning/test_calibration.py",
        "learning/test_poisson.py",
        "learning/test_dpsgd.py",
        "learning",
    ),
    "torch": ("contracts/test_calibration_torch.py", "learning"),
    "keyvalue": ("contracts/test_calibration_keyvalue.py", "keyvalue/test_second_refutation.py", "keyvalue"),
    "summaries": ("contracts/test_calibration_summaries.py", "summaries"),
    "ledger": ("ledger/test_durability.py", "release/test_order.py", "contracts/test_estimators.py", "release", "ledger"),
    "records": ("records",),
    "privacy": ("privacy", "distribution"),
}
"""Where a room's tests lie, in the order in which they are asked."""


class Mutant(NamedTuple):
    """One way to break a promise: in a file, what stands there once, what takes its place."""

    room: str
    name: str
    file: str
    edits: tuple[tuple[str, str], ...]

    def applied(self, text: str) -> str:
        """The broken text; a fragment that is not there exactly once is a mistake of this list."""
        for old, new in self.edits:
            if text.count(old) != 1:
                raise SystemExit(f"{self.file}: {old!r} must stand there once; it does {text.count(old)} times. Mend the list.")
            text = text.replace(old, new)
        return text


def _m(room: str, name: str, file: str, old: str, new: str, *more: tuple[str, str]) -> Mutant:
    return Mutant(room, name, f"src/sabun/{file}", ((old, new), *more))


MUTANTS = (
    # Outliers
    _m(
        "outliers",
        "choice spends 2 epsilon",
        "outliers/subspace.py",
        "(scores, epsilon=epsilon,",
        "(scores, epsilon=2 * epsilon,",
    ),
    _m(
        "outliers",
        "limit of the proof raised",
        "outliers/laws.py",
        "_LARGEST_PROVED = Fraction(2)",
        "_LARGEST_PROVED = Fraction(20)",
    ),
    _m("outliers", "one side of theta forgotten", "outliers/laws.py", "min(slide, stretch, _", "min(slide, _"),
    _m("outliers", "Laplace scale halved", "outliers/laws.py", "2 * bound / self._proved  #", "bound / self._proved  #"),
    _m("outliers", "Laplace beta doubled", "outliers/laws.py", "self._proved / 2 / max(", "self._proved / max("),
    _m("outliers", "Gaussian scale a fifth lower", "outliers/laws.py", "return 5 * sqrt_up(", "return 4 * sqrt_up("),
    _m(
        "outliers",
        "published log for Gaussian",
        "outliers/laws.py",
        "log_up((1 + Fraction(grown)) / self.delta)",
        "log_up(2 / self.delta)",
    ),
    _m("outliers", "error bar for free", "outliers/setup.py", "return (1 - share) * epsilon", "return epsilon"),
    _m(
        "outliers",
        "global noise for 2 epsilon",
        "outliers/count.py",
        "(l1=cap, epsilon=amounts.epsilon)",
        "(l1=cap, epsilon=2 * amounts.epsilon)",
    ),
    _m("outliers", "global variance not squared", "outliers/count.py", "l2_squared=cap * cap", "l2_squared=cap"),
    _m(
        "outliers",
        "bar's scale halved",
        "outliers/error_bar.py",
        "(_STEPS + 2) / self.epsilon",
        "(_STEPS + 2) / (2 * self.epsilon)",
    ),
    _m(
        "outliers",
        "add for replace in the cap",
        "outliers/kissing.py",
        "min(int(n), neighbours * kissing_bound(d) + 1)",
        "min(int(n), neighbours * kissing_bound(d))",
    ),
    _m(
        "outliers",
        "add for replace in the ladder",
        "outliers/sensitivity.py",
        'step = 1 if relation == "replace-one" else 0',
        "step = 0",
    ),
    _m("outliers", "touching balls missed", "outliers/ladder.py", "_TOUCH = (1.0 + 1e-9) ** 2", "_TOUCH = (1.0 - 1e-9) ** 2"),
    _m(
        "outliers",
        "vector noise of one output",
        "outliers/vector.py",
        "beta=self.beta, outputs=self.outputs)",
        "beta=self.beta, outputs=1)",
    ),
    _m(
        "outliers",
        "regions: bar gets everything",
        "outliers/regions.py",
        "ErrorBar(epsilon=ask.epsilon * share,",
        "ErrorBar(epsilon=ask.epsilon,",
    ),
    # Density
    _m("density", "add for replace", "density/rkhs.py", "self._euclidean(grid.joint(),", "self._euclidean(grid.add,"),
    _m(
        "density",
        "add for replace, told alike",
        "density/rkhs.py",
        "self._euclidean(grid.joint(),",
        "self._euclidean(grid.add,",
        ("Fraction(2**0.5)", "Fraction(1)"),
    ),
    _m(
        "density",
        "counts not in the sensitivity",
        "density/embedding.py",
        "max(sqrt_up(max(self.add, unit) ** 2 + unit**2), self.replace)",
        "self.add",
    ),
    _m("density", "uncovered rows counted twice", "density/rkhs.py", "int(off.sum())", "2 * int(off.sum())"),
    _m("density", "uncovered rows embedded too", "density/rkhs.py", "whole[off] = 0", "whole[:0] = 0"),
    _m(
        "density",
        "uncovered rows without noise",
        "density/rkhs.py",
        '"uncovered": noisy[-1] / size',
        '"uncovered": int(seen.sums[-1]) / size',
    ),
    _m(
        "density",
        "support depends on the other rows",
        "density/support.py",
        "~(inside & near)",
        "~(inside & near) & near.any()",
    ),
    _m(
        "density",
        "spherical scale halved",
        "density/mechanism.py",
        "spherical_laplace(self.l2 / self.epsilon,",
        "spherical_laplace(self.l2 / (2 * self.epsilon),",
    ),
    _m("density", "Gaussian variance halved", "density/mechanism.py", "l2_squared=l2**2,", "l2_squared=l2**2 / 2,"),
    _m(
        "density",
        "Laplace for 2 epsilon",
        "density/mechanism.py",
        "(l1=self.l1, epsilon=self.epsilon)",
        "(l1=self.l1, epsilon=2 * self.epsilon)",
    ),
    _m("density", "both halves get all", "density/paper.py", "epsilon=self.target.epsilon / 2", "epsilon=self.target.epsilon"),
    _m("density", "one coordinate for all", "density/paper.py", "l1=Fraction(self.basis.size * span)", "l1=Fraction(span)"),
    _m("density", "too much amplification", "density/paper.py", "(exp_down(epsilon) - 1) *", "(exp_down(epsilon) - 1) * 2 *"),
    _m(
        "density", "delta of one raw record", "density/paper.py", "delta=Fraction(self.wanted, size)", "delta=Fraction(1, size)"
    ),
    _m(
        "density",
        "add for replace in logistic",
        "density/logistic.py",
        "Fraction(2, max(size, 1))",
        "Fraction(1, max(size, 1))",
    ),
    _m(
        "density",
        "features not clipped",
        "density/logistic.py",
        "largest * ratio <= room",
        "largest * ratio < np.inf",
    ),
    _m(
        "density",
        "basis not clipped",
        "density/basis.py",
        "np.clip(np.where(np.isnan(numbers), 0.0, numbers), self.lower, self.upper)",
        "np.where(np.isnan(numbers), 0.0, numbers)",
    ),
    _m(
        "density",
        "kernel rounding forgotten",
        "density/kernel.py",
        "WHOLE_ERROR = Fraction(1, 2) + Fraction(1, 1024)",
        "WHOLE_ERROR = Fraction(0)",
    ),
    # Regression
    _m("regression", "add for replace", "regression/sensitivity.py", "one = Fraction(9, 2)", "one = Fraction(9, 4)"),
    _m(
        "regression",
        "rows of a person not squared",
        "regression/sensitivity.py",
        "one * int(records_per_person) ** 2",
        "one * int(records_per_person)",
    ),
    _m(
        "regression",
        "half of the half variance",
        "regression/sufficient.py",
        "discrete_gaussian(variance / 2, ",
        "discrete_gaussian(variance / 4, ",
    ),
    _m(
        "regression",
        "full variance halved",
        "regression/sufficient.py",
        "discrete_gaussian(variance, coin=coin, size=2 * width)",
        "discrete_gaussian(variance / 2, coin=coin, size=2 * width)",
    ),
    _m(
        "regression",
        "count nearly without noise",
        "regression/sufficient.py",
        "per_row = variance / (count_weight(study.relation) * _GRID) ** 2",
        "per_row = variance / (2 * _GRID) ** 2",
    ),
    _m(
        "regression",
        "Laplace for 2 epsilon",
        "regression/sufficient.py",
        "sqrt_up(l2_squared) / Fraction(study.epsilon)",
        "sqrt_up(l2_squared) / (2 * Fraction(study.epsilon))",
    ),
    _m("regression", "gradient halved", "regression/sensitivity.py", "return 2 * (coef_bound + 1)", "return coef_bound + 1"),
    _m(
        "regression",
        "determinant for free",
        "regression/sensitivity.py",
        "left = epsilon - people * log_up(1 + 1 / total)",
        "left = epsilon",
    ),
    _m(
        "regression",
        "rows leave the ball",
        "regression/design.py",
        "np.maximum(np.sqrt(squares), _FINE * self.scale)",
        "(_FINE * self.scale * np.ones_like(squares))",
    ),
    _m(
        "regression",
        "targets on twice the scale",
        "regression/design.py",
        "np.rint(np.clip((inside - centre) / half, -1.0, 1.0) * UNIT)",
        "np.rint(np.clip((inside - centre) / half, -1.0, 1.0) * 2 * UNIT)",
    ),
    _m(
        "regression",
        "promise of half epsilon",
        "regression/promise.py",
        "else Fraction(study.epsilon),",
        "else Fraction(study.epsilon) / 2,",
    ),
    # Learning
    _m("learning", "DP-SGD: add for replace", "learning/dpsgd.py", 'if self.problem.relation == "add-remove":', "if True:"),
    _m(
        "learning",
        "DP-SGD: sigma halved",
        "learning/dpsgd.py",
        "rounded_gaussian(total, sigma=multiplier,",
        "rounded_gaussian(total, sigma=multiplier / 2,",
    ),
    _m(
        "learning",
        "DP-SGD: sigma 1 % less",
        "learning/dpsgd.py",
        "rounded_gaussian(total, sigma=multiplier,",
        "rounded_gaussian(total, sigma=multiplier * 0.99,",
    ),
    _m(
        "learning",
        "DP-SGD: count for 4 epsilon",
        "learning/dpsgd.py",
        "discrete_laplace(1 / self.count_epsilon,",
        "discrete_laplace(Fraction(1, 4) / self.count_epsilon,",
    ),
    _m("learning", "epsilon not halved", "learning/accounting.py", "half = epsilon / 2", "half = epsilon"),
    _m("learning", "delta not shared", "learning/accounting.py", "share = delta / growth if", "share = delta if"),
    _m(
        "learning",
        "clipping removed",
        "learning/clipping.py",
        "1.0 / np.maximum(norms, self._clip_norm)",
        "1.0 / np.maximum(0.0 * norms, self._clip_norm)",
    ),
    _m(
        "learning",
        "pure SGD: add for replace",
        "learning/laplace_sgd.py",
        '(1 if self.problem.relation == "add-remove" else 2)',
        "1",
    ),
    _m(
        "learning",
        "pure SGD: scale halved",
        "learning/laplace_sgd.py",
        "+ self.network.n_weights) / self.step_epsilon",
        "+ self.network.n_weights) / (2 * self.step_epsilon)",
    ),
    _m(
        "learning",
        "objective: gradient moves one",
        "learning/objective.py",
        "return 2 / (self.objective_epsilon",
        "return 1 / (self.objective_epsilon",
    ),
    _m(
        "learning",
        "objective: curvature for free",
        "learning/objective.py",
        " - log_up(1 + Fraction(1, 4) / self.regularisation)",
        "",
    ),
    _m(
        "learning",
        "objective: rows not shortened",
        "learning/objective.py",
        "design /= norms[:, None]",
        "design /= self.problem.features.norm_bound",
    ),
    _m(
        "learning",
        "objective: output noise halved",
        "learning/objective.py",
        "return distance / self.output_epsilon",
        "return distance / (2 * self.output_epsilon)",
    ),
    _m(
        "learning",
        "LearningFirst: half the range",
        "learning/learning_first.py",
        "return 2 * self.steps / self.weight_epsilon",
        "return self.steps / self.weight_epsilon",
    ),
    _m(
        "learning",
        "AnonymizedLearning: one pass paid",
        "learning/anonymized_learning.py",
        "2 * self.steps * self.epochs / self.update_epsilon",
        "2 * self.steps / self.update_epsilon",
    ),
    _m(
        "learning",
        "AnonymizedLearning: sum not cut",
        "learning/anonymized_learning.py",
        "np.clip(_GRID.index(np.clip(total, -self.threshold, self.threshold)), -self.steps, self.steps)",
        "_GRID.index(total)",
    ),
    _m(
        "learning",
        "histogram: add for replace",
        "learning/synthesis/histogram.py",
        'changed = 1 if self.relation == "add-remove" else 2',
        "changed = 1",
    ),
    _m(
        "learning",
        "marginals: add for replace",
        "learning/synthesis/marginals.py",
        'changed = 1 if relation == "add-remove" else 2',
        "changed = 1",
    ),
    _m(
        "learning",
        "tree: twice the rate",
        "learning/synthesis/structure.py",
        "each / (2 * SENSITIVITY[relation])",
        "each / SENSITIVITY[relation]",
    ),
    _m(
        "learning",
        "counts: every column gets all",
        "learning/synthesis/bayes_net.py",
        "shape, _COUNTS / columns, coin)",
        "shape, _COUNTS, coin)",
    ),
    _m(
        "learning",
        "means: one group changes",
        "learning/synthesis/microaggregation.py",
        "return self.groups * self.record_steps / self.epsilon",
        "return self.record_steps / self.epsilon",
    ),
    _m("learning", "band too narrow", "learning/gaussian.py", "_BAND = 2.0**-18", "_BAND = 2.0**-60"),
    _m(
        "learning",
        "step not in the stream",
        "learning/stream.py",
        '        start = purpose.to_bytes(1, "big") + step.to_bytes(7, "big") + bytes(8)\n        return',
        '        start = purpose.to_bytes(1, "big") + bytes(15)\n        return',
    ),
    _m("learning", "more rows than accounted", "learning/poisson.py", "drawn < self.threshold)", "drawn < 2 * self.threshold)"),
    _m(
        "learning",
        "forged states believed",
        "learning/checkpoint.py",
        "if tagged and not hmac.compare_digest(tag, _tag(key, body)):",
        "if False:",
    ),
    # Torch
    _m("torch", "margin of norms gone", "learning/torch_modules/ghost.py", "MARGIN = 2.0**-30", "MARGIN = 0.0"),
    _m(
        "torch",
        "clipping removed",
        "learning/torch_modules/ghost.py",
        "share = norms.clamp_(min=self._clip_norm).reciprocal_()",
        "share = norms.mul_(0).clamp_(min=self._clip_norm).reciprocal_()",
    ),
    _m(
        "torch",
        "certified sigma halved",
        "learning/torch_modules/loop.py",
        "rounded_gaussian(centre, sigma=float(loop.multiplier),",
        "rounded_gaussian(centre, sigma=float(loop.multiplier) / 2,",
    ),
    _m(
        "torch",
        "torch sigma halved",
        "learning/torch_modules/loop.py",
        ".normal_(0.0, float(loop.multiplier),",
        ".normal_(0.0, float(loop.multiplier) / 2,",
    ),
    _m(
        "torch",
        "add for replace",
        "learning/torch_modules/trainer.py",
        "return halved(self.epsilon, delta)",
        "return Target(epsilon=self.epsilon, delta=delta)",
    ),
    # Key-value
    _m(
        "keyvalue",
        "tables for 2 epsilon",
        "keyvalue/client/tables.py",
        "exp_down(min(epsilon, Fraction(_LARGEST_EXPONENT)))",
        "exp_down(min(2 * epsilon, Fraction(_LARGEST_EXPONENT)))",
    ),
    _m(
        "keyvalue",
        "every later round gets all",
        "keyvalue/client/tables.py",
        "_growth(epsilon / 2 / rounds)\n",
        "_growth(epsilon / 2)\n",
    ),
    _m(
        "keyvalue",
        "no dummies",
        "keyvalue/client/device.py",
        "secrets.randbelow(max(len(own), padding))",
        "secrets.randbelow(max(len(own), 1))",
    ),
    _m(
        "keyvalue",
        "a report costs nothing",
        "keyvalue/client/device.py",
        "Fraction(0) if paid else self.terms.certified",
        "Fraction(0)",
    ),
    _m(
        "keyvalue",
        "truth more often than the table",
        "keyvalue/client/channel.py",
        "    if word < table.keep:\n        return state",
        "    if word < table.keep + table.keep // 64:\n        return state",
    ),
    _m(
        "keyvalue",
        "fewer bits than the table",
        "keyvalue/client/device.py",
        "states.get(self._place, 0), secrets.randbits(table.bits))",
        "states.get(self._place, 0), secrets.randbits(table.bits - 1))",
    ),
    _m(
        "keyvalue",
        "classic: others forgotten",
        "keyvalue/client/classic.py",
        "(exp_down(min(self.epsilon, Fraction(100))) + others)",
        "(2 * exp_down(min(self.epsilon, Fraction(100))) + others)",
    ),
    _m(
        "keyvalue",
        "a book in memory forgets",
        "keyvalue/client/diary.py",
        "self._book.update(staged.written)",
        "self._book.update({})",
    ),
    _m(
        "keyvalue",
        "pages within pages",
        "keyvalue/client/diary.py",
        'self._open.setdefault("page", token) is not token',
        "self._open is None",
    ),
    _m(
        "keyvalue",
        "one sign word for all keys",
        "keyvalue/client/device.py",
        "_word(bits[8 * turn : 8 * turn + 8])",
        "_word(bits[:8])",
    ),
    _m(
        "keyvalue",
        "a forked device answers again",
        "keyvalue/client/diary.py",
        "if os.getpid() != self._process:",
        "if False:",
    ),
    _m("keyvalue", "diary not synced", "keyvalue/client/diary.py", "PRAGMA synchronous=EXTRA", "PRAGMA synchronous=OFF"),
    # Summaries
    _m(
        "summaries",
        "noise for 2 epsilon",
        "summaries/laws.py",
        "l1=change.l1, epsilon=ask.epsilon",
        "l1=change.l1, epsilon=2 * ask.epsilon",
    ),
    _m("summaries", "L1 for L2", "summaries/laws.py", "l2_squared=change.l2_squared", "l2_squared=change.l1"),
    _m("summaries", "add for replace in counts", "summaries/sensitivity.py", "moved = 2 if relation", "moved = 1 if relation"),
    _m(
        "summaries",
        "one group for two in sums",
        "summaries/sensitivity.py",
        "Change(2 * most, max(width**2, 2 * most**2))",
        "Change(max(width, most), max(width, most) ** 2)",
    ),
    _m(
        "summaries",
        "the wide pair forgotten in sums",
        "summaries/sensitivity.py",
        "max(width**2, 2 * most**2))  #",
        "2 * most**2)  #",
    ),
    _m(
        "summaries",
        "add for replace in means",
        "summaries/sensitivity.py",
        "return Change(2 * width, 2 * width**2)",
        "return Change(width, width**2)",
    ),
    _m(
        "summaries",
        "add for replace in variances",
        "summaries/sensitivity.py",
        "return Change(2 * square, 2 * square**2)",
        "return Change(square, square**2)",
    ),
    _m("summaries", "end to end for the parabola", "summaries/sensitivity.py", "Fraction(9, 4) * square", "2 * square"),
    _m("summaries", "one group for two in ranks", "summaries/sensitivity.py", "max(Fraction(1), 2 * joined)", "Fraction(1)"),
    _m(
        "summaries",
        "half a person in ranks",
        "summaries/sensitivity.py",
        "joined = max(share, 1 - share)",
        "joined = min(share, 1 - share)",
    ),
    _m(
        "summaries",
        "a condition leaves the size public",
        "summaries/people.py",
        "self.by is None and not self.where",
        "self.by is None",
    ),
    _m(
        "summaries",
        "marks beyond the bounds",
        "summaries/ruler.py",
        "np.clip(marks, 0, self.steps)",
        "(2 * marks)",
    ),
    _m("summaries", "every share gets everything", "summaries/quantiles.py", "ask.epsilon / len(shares)", "ask.epsilon"),
    _m("summaries", "intervals for free", "summaries/quantiles.py", "(1 - Fraction(bar)) * each / moved", "each / moved"),
    _m("summaries", "ends at full price each", "summaries/quantiles.py", "Fraction(bar) / 2 * each", "Fraction(bar) * each"),
    _m("summaries", "the denominator forgotten", "summaries/quantiles.py", "rate=rate / self.share.denominator", "rate=rate"),
    _m("summaries", "twice the rate forgotten", "summaries/quantiles.py", "moved = 2 * cost_of_ranks", "moved = cost_of_ranks"),
    _m(
        "privacy",
        "a proposal is always kept",
        "privacy/noise/choice.py",
        "if exponent == 0:\n        return True",
        "if exponent >= 0:\n        return True",
    ),
    # Ledger, release
    _m("ledger", "writes not synced", "ledger/sqlite_store.py", '"synchronous=EXTRA"', '"synchronous=OFF"'),
    _m(
        "ledger",
        "writes as in WAL mode",
        "ledger/sqlite_store.py",
        'PRAGMA journal_mode=DELETE").fetchone()',
        'PRAGMA journal_mode").fetchone()',
        ('if mode != "delete":', "if not mode:"),
    ),
    _m("ledger", "two writers at once", "ledger/sqlite_store.py", 'self._begun("BEGIN IMMEDIATE")', 'self._begun("BEGIN")'),
    _m(
        "ledger",
        "charge after the draw",
        "release/publish.py",
        "    reservation = ledger.reserve(promise, purpose=draft.purpose, key=key)",
        "    draw, drawn = (lambda: drawn), draw()\n    reservation = ledger.reserve(promise, purpose=draft.purpose, key=key)",
    ),
    _m("ledger", "void after data was touched", "release/publish.py", "    reservation.touch()\n", ""),
    _m(
        "ledger",
        "add-remove charged as replace-one",
        "ledger/admission.py",
        "return guarantee.as_replace_one(), CONVERTED",
        "return guarantee, CONVERTED",
    ),
    _m(
        "ledger",
        "delta beyond the budget",
        "ledger/ledger.py",
        "after.epsilon <= self.budget.epsilon and after.delta <= self.budget.delta",
        "after.epsilon <= self.budget.epsilon",
    ),
    _m(
        "ledger",
        "changed tables pass",
        "ledger/sqlite_store.py",
        "set(found) != _SCHEMA",
        "not set(found) >= _SCHEMA",
        ("len(found) != len(_SCHEMA) or ", ""),
    ),
    _m("ledger", "a row is not read back", "ledger/sqlite_transaction.py", "if self.last().hash != row.hash:", "if False:"),
    _m("ledger", "sums of new rows on trust", "ledger/chain.py", "or row.spent != total_after(", "or not total_after("),
    _m(
        "ledger",
        "an entry closed twice",
        "ledger/chain.py",
        '            case [opening] if opening.kind == "reserve":\n                return opening\n',
        '            case [opening, *_] if opening.kind == "reserve":\n                return opening\n',
    ),
    _m("ledger", "foreign rows pass", "ledger/chain.py", "view.counts() != (piece.newest + 1, kept)", "False"),
    _m("ledger", "seeded results are charged", "release/publish.py", "    if promise.simulated:", "    if False:"),
    # Records
    _m(
        "records",
        "arrays not clipped",
        "records/encoding.py",
        "        np.clip(block, lower, upper, out=block)\n        block += 0.0",
        "        block += 0.0",
    ),
    _m(
        "records",
        "columns clipped 1 % too wide",
        "records/columns.py",
        "np.clip(values, self.lower, self.upper) + 0.0",
        "np.clip(values, self.lower, self.upper * 1.01) + 0.0",
    ),
    # Privacy
    _m(
        "privacy",
        "e^x rounded down",
        "privacy/certified.py",
        "return Fraction(_UP.next_plus(_UP.exp(",
        "return Fraction(_DOWN.next_minus(_DOWN.exp(",
    ),
    _m(
        "privacy",
        "rho not checked",
        "privacy/conversion.py",
        "    while delta_of_rho(rho, epsilon=epsilon_exact) > delta_exact:",
        "    rho *= Fraction(1001, 1000)\n    while False:",
    ),
    _m(
        "privacy",
        "variance rounded down",
        "privacy/calibration.py",
        "Fraction(math.ceil(needed * 2**bits), 2**bits)",
        "Fraction(math.floor(needed * 2**bits), 2**bits)",
    ),
    _m(
        "privacy",
        "no margin for the accountant",
        "privacy/composition.py",
        "_PLD_MARGIN = Fraction(1, 10**11)",
        "_PLD_MARGIN = Fraction(-1, 10**9)",
    ),
    _m(
        "privacy",
        "group of two as one",
        "privacy/guarantee.py",
        "min(delta + exp_up(epsilon) * delta, Fraction(1))",
        "min(2 * delta, Fraction(1))",
    ),
    _m("privacy", "discrete band too narrow", "privacy/noise/discrete.py", "_BAND = 1 << 15", "_BAND = 1 << 6"),
    _m("privacy", "uniform without rejection", "privacy/noise/exact.py", "drawn[drawn < limit]])", "drawn % limit])"),
    _m(
        "privacy",
        "Laplace tail cut off",
        "privacy/noise/discrete.py",
        "        while bernoulli_exp((1 << count) / scale, coin=coin):",
        "        while False and bernoulli_exp((1 << count) / scale, coin=coin):",
    ),
)


def _copy(place: Path) -> None:
    for folder in ("src", "tests", "examples", "tools"):
        shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(ROOT / "pyproject.toml", place)
    subprocess.run([sys.executable, "tests/architecture/proofs.py", "--stamp"], cwd=place, capture_output=True, check=True)


def _failure(place: Path, tests: str) -> str | None:
    """The first test that fails, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/{tests}"]
    # Without bytecode: two mutants of the same size within a second would be taken for each other.
    around = os.environ | {"PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=place, env=around, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return None
    failed = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return None if done.returncode == 0 else failed[0] if failed else f"{tests} (exit {done.returncode})"


def _must_pass_unbroken(place: Path, tests: str, passed: set[str]) -> None:
    """A test that fails without a mutant would seem to notice every one."""
    if tests not in passed and (failure := _failure(place, tests)) is not None:
        raise SystemExit(f"the unbroken package must pass its tests first; it fails {failure}")
    passed.add(tests)


def _digests(place: Path) -> str:
    """What the proofs say about the digests of the code."""
    command = [sys.executable, "tests/architecture/proofs.py"]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout


def survives(mutant: Mutant, place: Path, passed: set[str]) -> bool:
    """Breaks the copy, asks the room's tests until one notices, mends the copy; says what happened."""
    target, began = place / mutant.file, time.monotonic()
    whole, before = target.read_text(encoding="utf-8"), _digests(place)
    failure = None
    for tests in TESTS[mutant.room]:
        _must_pass_unbroken(place, tests, passed)
        target.write_text(mutant.applied(whole), encoding="utf-8")
        try:
            proof = "no proof" if _digests(place) == before else "proof too"
            failure = _failure(place, tests)
        finally:
            target.write_text(whole, encoding="utf-8")
        if failure is not None:
            break
    found = "SURVIVES" if failure is None else f"noticed by {failure}"
    print(f"{mutant.room}: {mutant.name}: {found} ({proof}, {time.monotonic() - began:.0f} s)", flush=True)
    return failure is None


def main() -> int:
    """Runs the chosen mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="room", help=f"one or more of {', '.join(TESTS)}; all when left out")
    parser.add_argument("--list", action="store_true", help="show the mutants and do nothing")
    asked = parser.parse_args()
    if unknown := set(asked.rooms) - set(TESTS):
        parser.error(f"there is no room {sorted(unknown)[0]!r}")
    chosen = [mutant for mutant in MUTANTS if not asked.rooms or mutant.room in asked.rooms]
    if asked.list:
        print("\n".join(f"{mutant.room}: {mutant.name} ({mutant.file})" for mutant in chosen))
        return 0
    for mutant in chosen:
        mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        _copy(Path(folder))
        passed: set[str] = set()
        left = [mutant for mutant in chosen if survives(mutant, Path(folder), passed)]
    print(f"{len(chosen)} mutants, {len(chosen) - len(left)} noticed, {len(left)} survive" + ("." if not left else ":"))
    for mutant in left:
        print(f"  {mutant.room}: {mutant.name} ({mutant.file})")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
