# %% [markdown]
# # Publish weights, so that anyone can answer questions about a private table
#
# A hospital cannot publish its patients. A public survey covers the same kind of people, but in other proportions. If
# each row of the survey gets a weight, the weighted survey can stand in for the hospital: means, shares, models. Only
# the weights are released, once, and every later answer is free.

# %%
import numpy as np
import pandas as pd

from sabun import Ledger
from sabun.density import DensityRatio

# %% [markdown]
# A public survey of 1,500 people, and a private table of 6,000 older and heavier ones.

# %%
maker = np.random.default_rng(11)


def people(count: int, age: float, kilos: float) -> pd.DataFrame:
    """Made-up people; blood pressure rises with age and body weight."""
    ages = maker.normal(age, 12, count)
    weights = maker.normal(kilos, 11, count)
    pressure = 90 + 0.4 * ages + 0.3 * weights + maker.normal(0, 6, count)
    return pd.DataFrame({"age": ages, "kilos": weights, "pressure": pressure})


survey = people(1500, age=48, kilos=72)
hospital = people(6000, age=58, kilos=78)

# %% [markdown]
# The plan needs only public things.

# %%
columns = ["age", "kilos", "pressure"]
print(DensityRatio(epsilon=1.0, columns=columns).plan(public=survey, n_records=len(hospital)))

# %% [markdown]
# The release: one noisy vector leaves the hospital. The default method needs no bounds, because each patient's part in
# that vector is bounded whatever the patient's values are.

# %%
ledger = Ledger.create("hospital.ledger", name="hospital-2026", unit="patient", epsilon=1)
ratio = DensityRatio(epsilon=1.0, columns=columns, ledger=ledger).fit(private=hospital, public=survey)
print(ratio.guarantee_)
print(f"worth {ratio.diagnostics_.effective_size:.0f} even rows; covers the private table: {ratio.diagnostics_.covered}")

# %% [markdown]
# Anybody with the survey and the weights can now ask.

# %%
rows = []
for column in columns:
    answer = ratio.query(column)
    rows.append((column, survey[column].mean(), answer.estimate, answer.interval, hospital[column].mean()))
print(pd.DataFrame(rows, columns=["column", "survey alone", "weighted", "interval", "truth (private)"]).round(1))
for column, unweighted, weighted, _, truth in rows:
    assert abs(weighted - truth) < abs(unweighted - truth), column

# %% [markdown]
# Questions nobody thought of before the release work too: the share of people above 70.

# %%
older = ratio.mean((survey["age"] > 70).to_numpy())
print(
    f"older than 70: survey {np.mean(survey['age'] > 70):.3f}, weighted {older:.3f}, truth {np.mean(hospital['age'] > 70):.3f}"
)

# %% [markdown]
# The weights travel as a column beside the public rows.

# %%
table = ratio.to_frame()
assert len(table) == len(survey)
assert abs(table["weight"].mean() - 1) < 1e-6
print(table.head())
