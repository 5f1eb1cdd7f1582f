"""How releases of the learning room are told: a model with its privacy card."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sabun.privacy.amounts import plain
from sabun.release import Release
from sabun.telling.charts import histogram
from sabun.telling.generic import promised, stages
from sabun.telling.language import phrase, said
from sabun.telling.reading import Unfit, has, numbers_at, text_at, texts_at
from sabun.telling.story import Answer, Grid, Story
from sabun.telling.words import count, listed, number, shown, unit_word

__all__ = ["story"]

_MOST_NAMED = 5

_STEPS = {
    "dp-adam": (
        phrase("Columns were brought to one scale by noisy means, spreads and shares, where the settings say so."),
        phrase(
            "In each step, each record's gradient was shortened to a public length, the gradients were added up, and Gaussian "
            "noise was added; Adam's updates are computed from these noisy sums alone."
        ),
        phrase("The cost of all steps together was computed from these public numbers, before the first of them."),
    ),
    "dp-sgd": (
        phrase("In each step, every record took part with a small probability of its own."),
        phrase(
            "Each record's gradient was shortened to a public length, the gradients were added up, and Gaussian noise was "
            "added."
        ),
        phrase("The cost of all steps together was computed from these public numbers, before the first of them."),
    ),
    "noisy-centroids": (
        phrase("All columns were brought to one scale by noisy sums of all records."),
        phrase("The records of each class were added up and noise was added; the model parts the noisy means of the classes."),
    ),
    "laplace-sgd": (
        phrase("In each step, every record took part with a small probability of its own."),
        phrase(
            "Each record's gradient was shortened to a public length, the gradients were added up, and Laplace noise was added."
        ),
    ),
    "objective-perturbation": (phrase("The model is the best one for an objective with random noise inside."),),
    "anonymizing-first": (
        phrase("A synthetic table was drawn from noisy counts of the private one."),
        phrase("The model was trained on the synthetic table; that costs no privacy."),
    ),
    "learning-first": (phrase("The model was trained without noise; noise was added to each weight at the end."),),
    "anonymized-learning": (phrase("Noise was added to each weight's update while training."),),
}
_CARD = {
    "sizes": phrase("layers"),
    "steps": phrase("steps"),
    "sampling_probability": phrase("chance to take part in a step"),
    "noise_multiplier": phrase("noise per clipped length"),
    "clip_norm": phrase("clipped length of a gradient"),
    "learning_rate": phrase("learning rate"),
    "momentum": phrase("momentum"),
    "n_public": phrase("records, as declared"),
}


def story(release: Release) -> Story:
    """Tells what was trained, and the numbers its promise rests on."""
    facts = release.provenance.parameters
    method, weights = text_at(facts, "method"), numbers_at(release.value, "weights")
    sizes = _sizes(release)
    chart = histogram(weights, title=said("The released weights"), axis=said("weight"), things=phrase("weight"))
    return Story(
        title=said("Privately trained classifier"),
        answer=Answer(
            big=said("Predicts {classes}", classes=_predicted(facts, sizes)),
            sentence=said(
                "This is what the model predicts for a {unit}, from {inputs}. It is a {model} with {shape}, trained with "
                "“{method}”. It may be handed to anybody, and using it costs no further privacy: it keeps {terms} for "
                "everybody it was trained on.",
                unit=unit_word(promised(release).unit),
                inputs=_inputs(facts, sizes),
                model=said("linear model") if len(sizes) == 2 else said("network"),
                shape=_shape(len(weights), sizes),
                method=method,
                terms=_terms(release),
            ),
        ),
        stages=stages(release, tuple(map(said, _STEPS.get(method, ())))),
        charts=() if chart is None else (chart,),
        grids=(_card(release),),
        cautions=_cautions(release),
    )


def _shape(weights: int, sizes: tuple[int, ...]) -> str:
    hidden = said(", hidden layers of {sizes}", sizes=shown(sizes[1:-1])) if sizes[1:-1] else ""
    return count(weights, "weight") + hidden


def _predicted(facts: Mapping[str, Any], sizes: tuple[int, ...]) -> str:
    """The classes by name, where the release names them."""
    if not has(facts, "classes"):
        return said("one of {classes}", classes=count(sizes[-1], "class"))
    names = texts_at(facts, "classes", size=sizes[-1])
    if len(names) > _MOST_NAMED:
        return said("{names} … ({classes:,} classes)", names=said(", ").join(names[:_MOST_NAMED]), classes=len(names))
    return said("{names} or {last}", names=said(", ").join(names[:-1]), last=names[-1])


def _inputs(facts: Mapping[str, Any], sizes: tuple[int, ...]) -> str:
    names = texts_at(facts, "columns") if has(facts, "columns") else ()
    if not names:
        return count(sizes[0], "input")
    if len(names) > _MOST_NAMED:
        more = count(len(names) - _MOST_NAMED, "more column")
        return said("{names} and {more}", names=listed(names[:_MOST_NAMED]), more=more)
    return listed(names)


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
    rows = [(said(words), _shown(facts[name])) for name, words in _CARD.items() if has(facts, name)]
    expected = _expected(facts)
    if expected is not None:
        rows.append((said("expected times a record takes part"), number(expected, 3)))
    return Grid(title=said("Privacy card"), columns=(said("what"), said("value")), rows=tuple(rows))


def _shown(value: object) -> str:
    return " → ".join(map(str, value)) if isinstance(value, tuple) else shown(value)


def _expected(facts: Mapping[str, Any]) -> float | None:
    steps, probability = facts.get("steps"), facts.get("sampling_probability")
    if isinstance(steps, int) and isinstance(probability, int | float | Fraction):
        return steps * float(probability)
    return None


def _cautions(release: Release) -> tuple[str, ...]:
    lines = [said("How well the model predicts is not in the release: measure it on records that are not private.")]
    if release.guarantee.scope == "per-parameter":
        lines.insert(
            0, said("The paper's promise is about each weight by itself; what counts is the figure for all of them together.")
        )
    return tuple(lines)
