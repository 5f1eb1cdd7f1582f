# %% [markdown]
# # How many outliers are in this sensitive table?
#
# A clinic wants to publish how many of its patients have unusual blood values, without pointing at any of them. An
# outlier is a patient who has fewer than `k` others nearby. One patient can change the answer by more than one: a
# neighbour who leaves may turn several others into outliers. So the noise has to fit the table, without betraying it.

# %%
import numpy as np

from sabun import Column, Ledger, Release, Schema
from sabun.outliers import OutlierCount, smooth_bound

# %% [markdown]
# A made-up table: 4,000 patients, 40 of them far from all others. In real life this is the private part.

# %%
maker = np.random.default_rng(7)
usual = maker.normal([5.0, 140.0], [0.6, 9.0], size=(3960, 2))
unusual = maker.uniform([0.0, 60.0], [20.0, 250.0], size=(40, 2))
patients = np.vstack([usual, unusual])

# %% [markdown]
# What is publicly known: the bounds of both columns, and what *we* call an outlier. Distances are measured in units of
# the bounds.

# %%
schema = Schema(
    columns=[
        Column.number("glucose", lower=0, upper=20, missing=5),
        Column.number("sodium", lower=60, upper=250, missing=140),
    ]
)
question = {"k": 5, "radius": 0.05, "schema": schema}

# %% [markdown]
# First the plan: what it costs and how wrong it may be, before any patient is looked at.

# %%
print(OutlierCount(**question, epsilon=2).plan(n_records=len(patients), dimensions=2))

# %% [markdown]
# Then the release. The charge is in the book before the coin is tossed. The scale of the noise depends on the table, so
# it is private as well; the interval comes from a second, paid draw and is cautious.

# %%
ledger = Ledger.create("clinic.ledger", name="clinic-2026", unit="patient", epsilon=3)
answer = OutlierCount(**question, epsilon=2, ledger=ledger).fit(patients)
print(f"about {answer.count_} outliers; the exact number lies in {answer.interval_}, 19 times out of 20")
print(answer.guarantee_)
print(f"left in the book: epsilon {ledger.remaining.epsilon}")

# %% [markdown]
# One file holds the value, the promise and where it came from. Using it again is free.

# %%
answer.release_.save("outliers.json")
assert Release.load("outliers.json")["count"] == answer.count_

# %% [markdown]
# How far off is it usually? A simulation with seeds answers that. It says so, and the book would refuse it.

# %%
tries = [OutlierCount(**question, epsilon=2, random_state=seed).fit(patients) for seed in range(20)]
assert all(attempt.guarantee_.simulated for attempt in tries)
print("twenty simulated answers:", sorted(attempt.count_ for attempt in tries))

# %% [markdown]
# Why not the bound that the original paper prints? Three points are enough to see it fail: all three are outliers, and
# moving one of them between the other two makes all three inliers. The bound must be at least 3.

# %%
three = [[0.0], [2.0], [4.0]]
ours = smooth_bound(three, k=1, radius=1, beta=1)
printed = smooth_bound(three, k=1, radius=1, beta=1, cover="paper")
print(f"needed 3, ours {ours:.3f}, as printed {printed:.3f}")
assert printed < 3 <= ours
