# %% [markdown]
# # Collect (key, value) pairs without learning anyone's
#
# Which of four apps do people use, and for how long? Each device answers about one app, with a coin of its own. The
# collector learns shares and means over everybody and next to nothing about anybody, itself included.

# %%
import numpy as np

from sabun.keyvalue import Study

# %% [markdown]
# The study is public and the same for everyone: the keys, the range of the values (hours a day), the privacy of one
# report.

# %%
apps = ["maps", "music", "news", "games"]
study = Study(keys=apps, epsilon=2.0, value_range=(0, 8))
print(study.explain())
study.save("study.json")

# %% [markdown]
# On a device. What leaves it is a few bytes of the same length for everybody.

# %%
device = Study.load("study.json").client()
report = device.report({"music": 2.5, "maps": 0.5})
print(f"{len(report)} bytes: {report.hex()}")

# %% [markdown]
# At the collector. Six hundred made-up people send real reports; two counters are merged into one.

# %%
maker = np.random.default_rng(5)
shares = np.array([0.7, 0.5, 0.3, 0.1])
hours = np.array([1.0, 3.0, 2.0, 6.0])


def person() -> dict[str, float]:
    """The apps somebody uses, with hours a day."""
    return {app: float(hour) for app, hour, used in zip(apps, hours, maker.random(4) < shares, strict=True) if used}


morning, evening = study.tally(), study.tally()
for number in range(600):
    (morning if number % 2 else evening).add(study.client().report(person()))
morning.merge(evening)
print(morning.estimate().to_frame())

# %% [markdown]
# Six hundred people are far too few in the local model: look at the intervals. How many are needed? A simulation draws
# the counters of a million people from their exact law in a moment. It is NOT PRIVATE, and it says so.

# %%
for size in (10_000, 1_000_000):
    result = study.simulate(shares, hours, n=size, random_state=1).estimate()
    print(f"{size:>9} people: shares {result.frequency.round(3)}, hours {result.mean.round(2)}")
assert np.abs(result.frequency - shares).max() < 0.02

# %% [markdown]
# The plan says the same without a simulation.

# %%
print(study.plan(n_records=100_000, frequency=0.3))
