# %% [markdown]
# # Several organisations learn one linear model
#
# Four large clinics and one small one want to predict a dose from age and weight. None may share a row. The small one
# sees only young patients, so its own model fails for everybody else. Each of the others releases private sums once;
# the small one combines them with its own data.

# %%
import numpy as np

from sabun import Ledger
from sabun.regression import PrivateRidge, combine

# %% [markdown]
# Public facts, agreed before anybody looks: the columns, their bounds, the budget.

# %%
bounds = [(20, 90), (40, 120)]
dose_bounds = (0, 120)
truth = np.array([0.5, 0.4])
maker = np.random.default_rng(3)


def clinic(count: int, youngest: float = 20, oldest: float = 90) -> tuple[np.ndarray, np.ndarray]:
    """Made-up patients: age and weight decide the dose, with some scatter."""
    patients = np.column_stack([maker.uniform(youngest, oldest, count), maker.uniform(40, 120, count)])
    return patients, 5 + patients @ truth + maker.normal(0, 8, count)


# %% [markdown]
# What would it buy? The plan knows sizes only.

# %%
print(PrivateRidge(epsilon=1.0, x_bounds=bounds, y_bounds=dose_bounds).plan(n_records=2000, organisations=4))

# %% [markdown]
# Four clinics release. Each has its own book; only a small file leaves.

# %%
files = []
for name in ("north", "east", "south", "west"):
    patients, doses = clinic(2000)
    ledger = Ledger.create(f"{name}.ledger", name=name, unit="patient", epsilon=1, delta=1e-6)
    model = PrivateRidge(epsilon=1.0, delta=1e-6, x_bounds=bounds, y_bounds=dose_bounds, ledger=ledger).fit(patients, doses)
    model.release_.save(f"{name}.json")
    files.append(f"{name}.json")
    print(f"{name:<6} coefficients {model.coef_.round(2)}, left: epsilon {ledger.remaining.epsilon}")

# %% [markdown]
# The fifth clinic has 40 patients between 20 and 28. With its own data it gets a `HomeModel`: that one has seen raw
# rows, so it stays at home and cannot be exchanged.

# %%
own, own_doses = clinic(40, youngest=20, oldest=28)
together = combine(files, own, own_doses)
print(type(together).__name__, together.coef_.round(3), "truth", truth)

# %% [markdown]
# Without home data the result is a function of released files only, and may be published.

# %%
public = combine(files)
print(type(public).__name__, public.coef_.round(3))

# %% [markdown]
# How good are they for patients of all ages? The scatter of the doses alone gives a mean squared error of 64.

# %%
fresh, fresh_doses = clinic(4000)
plain = np.linalg.lstsq(np.column_stack([np.ones(len(own)), own]), own_doses, rcond=None)[0]
predictions = {
    "home alone": plain[0] + fresh @ plain[1:],
    "home and files": together.predict(fresh),
    "files only": public.predict(fresh),
}
errors = {name: float(np.mean((predicted - fresh_doses) ** 2)) for name, predicted in predictions.items()}
for name, error in errors.items():
    print(f"{name:<15} mean squared error {error:.0f}")
assert errors["home and files"] < errors["home alone"]
