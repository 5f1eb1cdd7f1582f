"""How releases of the learning room are told: a model with its privacy card."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sabun.privacy.amounts import plain
from sabun.release import Release
from sabun.telling.charts import histogram
from sabun.telling.generic import stages
from sabun.telling.reading import Unfit, has, numbers_at, text_at, texts_at
from sabun.telling.story import Answer, Grid, Story
from sabun.telling.words import count, number, shown

__all__ = ["story"]

_MOST_NAMED = 5

_STEPS = {
    "dp-adam": (
        "Columns of numbers were brought to one scale by noisy means and spreads, where the settings say so.",
        "In each step, each record's gradient was shortened to a public length, the gradients were added up, and Gaussian "
        "noise was added; Adam's updates are computed from these noisy sums alone.",
        "The cost of all steps together was computed from these public numbers, before the first of them.",
    ),
    "dp-sgd": (
        "In each step, every record took part with a small probability of its own.",
        "Each record's gradient was shortened to a public length, the gradients were added up, and Gaussian noise was added.",
        "The cost of all steps together was computed from these public numbers, before the first of them.",
    ),
    "noisy-centroids": (
        "All columns were brought to one scale by noisy sums of all records.",
        "The records of each class were added up and noise was added; the model parts the noisy means of the classes.",
    ),
    "laplace-sgd": (
        "In each step, every record took part with a small probability of its own.",
        "Each record's gradient was shortened to a public length, the gradients were added up, and Laplace noise was added.",
    ),
    "objective-perturbation": ("The model is the best one for an objective with random noise inside.",),
    "anonymizing-first": (
        "A synthetic table was drawn from noisy counts of the private one.",
        "The model was trained on the synthetic table; that costs no privacy.",
    ),
    "learning-first": ("The model was trained without noise; noise was added to each weight at the end.",),
    "anonymized-learning": ("Noise was added to each weight's update while training.",),
}
_CARD = {
    "sizes": "layers",
    "steps": "steps",
    "sampling_probability": "chance to take part in a step",
    "noise_multiplier": "noise per clipped length",
    "clip_norm": "clipped length of a gradient",
    "learning_rate": "learning rate",
    "momentum": "momentum",
    "n_public": "records, as declared",
}


def story(release: Release) -> Story:
    """Tells what was trained, and the numbers its promise rests on."""
    facts = release.provenance.parameters
    method, weights = text_at(facts, "method"), numbers_at(release.value, "weights")
    sizes = _sizes(release)
    shape = f"{count(len(weights), 'weight')}" + (f", hidden layers of {shown(sizes[1:-1])}" if sizes[1:-1] else "")
    chart = histogram(weights, title="The released weights", axis="weight", things="weight")
    return Story(
        title="Privately trained classifier",
        answer=Answer(
            big=f"Predicts {_predicted(facts, sizes)}",
            sentence=f"This is what the model predicts for a {release.guarantee.unit}, from {_inputs(facts, sizes)}. It is a "
            f"{'linear model' if len(sizes) == 2 else 'network'} with {shape}, trained with “{method}”. It may be handed to "
            f"anybody, and using it costs no further privacy: it keeps {_terms(release)} for everybody it was trained on.",
        ),
        stages=stages(release, _STEPS.get(method, ())),
        charts=() if chart is None else (chart,),
        grids=(_card(release),),
        cautions=_cautions(release),
    )


def _predicted(facts: Mapping[str, Any], sizes: tuple[int, ...]) -> str:
    """The classes by name, where the release names them."""
    if not has(facts, "classes"):
        return f"one of {count(sizes[-1], 'class')}"
    names = texts_at(facts, "classes", size=sizes[-1])
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} … ({len(names):,} classes)"
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _inputs(facts: Mapping[str, Any], sizes: tuple[int, ...]) -> str:
    names = texts_at(facts, "columns") if has(facts, "columns") else ()
    if not names:
        return count(sizes[0], "input")
    if len(names) > _MOST_NAMED:
        return f"{', '.join(f'“{name}”' for name in names[:_MOST_NAMED])} and {count(len(names) - _MOST_NAMED, 'more column')}"
    return ", ".join(f"“{name}”" for name in names)


def _terms(release: Release) -> str:
    epsilon, delta = release.guarantee.cost
    return f"epsilon {plain(epsilon)}" + (f", delta {plain(delta)}" if delta else "")


def _sizes(release: Release) -> tuple[int, ...]:
    """As released where a noisy number may have decided them, else as they were fixed beforehand."""
    model = release.value.get("model")
    sizes = (model if isinstance(model, Mapping) and has(model, "sizes") else release.provenance.parameters).get("sizes")
    good = isinstance(sizes, tuple) and len(sizes) >= 2 and all(isinstance(size, int) for size in sizes)
    if not good:
        raise Unfit("sizes")
    assert isinstance(sizes, tuple)
    return sizes


def _card(release: Release) -> Grid:
    facts = release.provenance.parameters
    rows = [(words, _shown(facts[name])) for name, words in _CARD.items() if has(facts, name)]
    expected = _expected(facts)
    if expected is not None:
        rows.append(("expected times a record takes part", number(expected, 3)))
    return Grid(title="Privacy card", columns=("what", "value"), rows=tuple(rows))


def _shown(value: object) -> str:
    return " → ".join(map(str, value)) if isinstance(value, tuple) else shown(value)


def _expected(facts: Mapping[str, Any]) -> float | None:
    steps, probability = facts.get("steps"), facts.get("sampling_probability")
    if isinstance(steps, int) and isinstance(probability, int | float | Fraction):
        return steps * float(probability)
    return None


def _cautions(release: Release) -> tuple[str, ...]:
    lines = ["How well the model predicts is not in the release: measure it on records that are not private."]
    if release.guarantee.scope == "per-parameter":
        lines.insert(
            0, "The paper's promise is about each weight by itself; what counts is the figure for all of them together."
        )
    return tuple(lines)
