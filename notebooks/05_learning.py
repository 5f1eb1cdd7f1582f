# %% [markdown]
# # Train a classifier on personal records and hand it over
#
# Who earns more than 50,000 dollars a year? The table is the Adult census extract that comes with the package. The
# weights of a network can remember single people, so they are trained with a coin in every step, and the model travels
# with a card that says what is promised.

# %%
import numpy as np

from sabun import Ledger
from sabun.datasets import load_adult
from sabun.learning import PrivateClassifier, load_model, verify

# %% [markdown]
# Bounds and categories come from the documentation of the data set, not from its rows.

# %%
adult = load_adult()
train, test = slice(0, 12_000), slice(24_000, 30_000)
labels = list(adult.label.categories)
settings = {"schema": adult.schema, "classes": labels, "hidden": (), "delta": 1e-5, "epochs": 10}
print(PrivateClassifier(epsilon=1.0, **settings).plan(n_records=12_000))

# %% [markdown]
# One training is one release, charged as a whole before the first step.

# %%
ledger = Ledger.create("census.ledger", name="census", unit="person", relation="add-remove", epsilon=2, delta=1e-4)
classifier = PrivateClassifier(epsilon=1.0, ledger=ledger, **settings).fit(adult.data[train], adult.target[train])
print(classifier.guarantee_)
accuracy = np.mean(classifier.predict(adult.data[test]) == adult.target[test].to_numpy())
majority = np.mean(adult.target[test] == adult.target[train].mode()[0])
print(f"accuracy {accuracy:.3f} on people it has never seen; always guessing the larger class gives {majority:.3f}")
assert accuracy > majority

# %% [markdown]
# The folder holds the weights, the card and the release. Whoever receives it can recompute the promise from the card.

# %%
classifier.save("model")
print(verify("model"))
received = load_model("model")
assert np.mean(received.predict(adult.data[test]) == classifier.predict(adult.data[test])) == 1

# %% [markdown]
# Beware of "epsilon per parameter". The paper behind this job promises that, and a reader of the model sees all
# parameters at once.

# %%
settings = {"schema": adult.schema, "classes": labels, "hidden": (8,), "epochs": 1}
paper = PrivateClassifier(method="learning-first", epsilon=1, random_state=1, **settings)
paper.fit(adult.data[:500], adult.target[:500])
print(f"per parameter: epsilon {paper.guarantee_.epsilon}; for the model as a whole: epsilon {paper.guarantee_.joint_epsilon}")
assert paper.guarantee_.joint_epsilon > 100 * paper.guarantee_.epsilon
