"""Names inside a release file, in words a reader knows: what a page shows instead of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sabun.telling.language import phrase, retold, said

__all__ = ["SPELLINGS", "column_words", "term"]

_TERMS = {
    "batch_size": phrase("records in a step, on average"),
    "bias_bound": phrase("largest bias"),
    "clip_norm": phrase("clipped length of a gradient"),
    "clip_radius": phrase("length to which rows are shortened"),
    "coef_bound": phrase("bound on the coefficients' length"),
    "count_epsilon": phrase("epsilon of the noisy number of records"),
    "error_bar": phrase("share of epsilon for the intervals"),
    "error_bar_epsilon": phrase("epsilon of the error bar"),
    "fit_intercept": phrase("with a constant"),
    "frequency_high": phrase("share of people, upper end"),
    "frequency_low": phrase("share of people, lower end"),
    "index_mode": phrase("how keys are assigned"),
    "input_bound": phrase("bound on the inputs' length"),
    "learning_rate": phrase("learning rate"),
    "ledger_rows": phrase("rows of the ledgers"),
    "mean_high": phrase("mean, upper end"),
    "mean_low": phrase("mean, lower end"),
    "mean_reason": phrase("why there is no mean"),
    "min_batch": phrase("fewest reports in a batch"),
    "model_sha256": phrase("hash of the model"),
    "n_centers": phrase("number of centres"),
    "n_parameters": phrase("number of weights"),
    "n_public": phrase("records, as declared"),
    "n_rows": phrase("number of rows"),
    "noise_multiplier": phrase("noise per clipped length"),
    "noise_scale": phrase("scale of the noise"),
    "noise_sd": phrase("standard deviation of the noise"),
    "padding_length": phrase("pairs each device fills up to"),
    "private_rows": phrase("private rows"),
    "public_rows": phrase("public rows"),
    "ranks_off": phrase("ranks that may be off"),
    "records_per_person": phrase("records of one person, at most"),
    "residual_moment": phrase("sum of the residuals' squares"),
    "residual_square": phrase("square of the residuals"),
    "residual_weight": phrase("weight of the residuals"),
    "retry_key": phrase("name under which a retry is free"),
    "sampling_probability": phrase("chance to take part in a step"),
    "scale_estimate": phrase("estimated scale"),
    "step_epsilon": phrase("epsilon of a step"),
    "study_hash": phrase("hash of the study"),
    "synthetic_labels": phrase("labels of the synthetic table"),
    "synthetic_table": phrase("the synthetic table"),
    "table_bits": phrase("bits of the table"),
    "task_id": phrase("name of the task"),
}
"""Names of results and choices that are no words. A name that is one, or that the owner of the data gave, stays as it is."""

_WHOLE = {
    "bins": phrase("bins"),
    "by": phrase("one answer for each"),
    "column": phrase("column"),
    "columns": phrase("columns"),
    "confidence": phrase("confidence"),
    "dates": phrase("columns of dates"),
    "dimensions": phrase("number of coordinates"),
    "edges": phrase("edges of the bins"),
    "groups": phrase("groups"),
    "mechanism": phrase("mechanism"),
    "method": phrase("method"),
    "noise": phrase("scale of the noise"),
    "radius": phrase("radius"),
    "records": phrase("number of records"),
    "relation": phrase("relation"),
    "shares": phrase("shares"),
    "step": phrase("distance between marks"),
    "where": phrase("condition"),
    "converged": phrase("fit converged"),
    "count": phrase("count"),
    "factor": phrase("factor of the kernel"),
    "interval": phrase("interval"),
    "level": phrase("constant of the logarithm"),
    "open": phrase("how far the ratio is open"),
    "uncovered": phrase("share of private rows unlike any public one"),
    "units": phrase("units of the columns"),
    "answers": phrase("what is sent in later rounds"),
    "bandwidth": phrase("width of the kernel"),
    "beta": phrase("how fast the bound may change (beta)"),
    "classes": phrase("labels"),
    "cover": phrase("how the bound was found"),
    "epsilon": phrase("epsilon"),
    "k": phrase("neighbours (k)"),
    "keys": phrase("keys"),
    "layers": phrase("layers"),
    "organisation": phrase("organisation"),
    "precision": phrase("precision of the sums"),
    "protocol": phrase("protocol"),
    "rank": phrase("number of averages"),
    "regularization": phrase("penalty on uneven weights"),
    "reports": phrase("reports"),
    "rounds": phrase("rounds"),
    "standardize": phrase("numbers on one scale"),
    "steps": phrase("steps"),
    "tau2": phrase("expected spread of the ratio (tau2)"),
}
"""Names that are words, but say too little; only where they stand alone, for inside a result they may be labels."""


_DECLARED = {
    "categories": phrase("labels"),
    "kind": phrase("kind"),
    "log1p": phrase("logarithm of 1 + value"),
    "lower": phrase("lower bound"),
    "missing": phrase("what stands for an empty cell"),
    "name": phrase("name"),
    "unit": phrase("unit"),
    "upper": phrase("upper bound"),
}
"""What is declared about a column."""

_STUDY = {
    "delta": phrase("delta"),
    "epsilon": phrase("epsilon"),
    "features.columns": phrase("feature columns"),
    "features.format": phrase("format of the columns"),
    "format": phrase("format"),
    "mechanism": phrase("method"),
    "name": phrase("name"),
    "organisations": phrase("organisations that take part"),
    "relation": phrase("relation"),
    "ridge": phrase("penalty on large coefficients"),
    "unit": phrase("whom a row speaks of"),
}
"""The terms of a regression study that say too little by themselves."""

_FILE = "features.file."

_PERSONS = {
    "id": phrase("column that tells persons apart"),
    "order": phrase("column that says what is first and last"),
    "rules": phrase("how a person's cells become one"),
    "spelling": phrase("how ids are read"),
}
"""How persons were made of several rows."""

SPELLINGS = {
    "text": phrase("text: as written"),
    "caseless": phrase("caseless: upper and lower case alike"),
    "number": phrase("number: as whole numbers"),
}
"""How ids are read, for the forms of the desk and for reports."""

_ACCOUNT = {
    "delta": phrase("delta"),
    "events": phrase("what was drawn"),
    "relation": phrase("relation"),
    "rule": phrase("rule"),
}
"""How the cost of many steps was counted."""

_FIRST = {
    "counts": phrase("count"),
    "intervals": phrase("interval"),
    "labels": phrase("labels in the condition"),
    "means": phrase("mean"),
    "quantiles": phrase("quantiles"),
    "radius": phrase("radius"),
    "regions": phrase("region"),
    "sizes": phrase("noisy size"),
    "subspaces": phrase("set of columns"),
    "sums": phrase("sum"),
    "units": phrase("unit"),
    "variances": phrase("variance"),
    "where": phrase("condition"),
}
"""Names of tables of results, and what stands for them before a name in them."""


def term(name: str) -> str:
    """A dotted name of a release with words for the parts that are ours.

    Example:
        >>> term("noise_sd"), term("means.age_group")
        ('standard deviation of the noise', 'mean.age_group')
    """
    first, dot, rest = name.partition(".")
    if not dot and (alone := _WHOLE.get(name) or _FIRST.get(name)):
        return said(alone)
    if first in _FIRST:
        return f"{said(_FIRST[first])}.{rest}"
    if first == "persons" and dot:
        part, _, column = rest.partition(".")
        return said(_PERSONS[part]) + (f".{column}" if column else "") if part in _PERSONS else name
    if first == "account" and rest in _ACCOUNT:
        return said("counting the cost: {name}", name=said(_ACCOUNT[rest]))
    if first == "study" and dot:
        target, _, own = rest.partition(".")
        if target == "target" and own in _DECLARED:
            return said("study: {name}", name=said("target: {name}", name=said(_DECLARED[own])))
        if rest.startswith(_FILE):
            return said("study: {name}", name=said("how tables are written: {name}", name=said(rest.removeprefix(_FILE))))
        return said("study: {name}", name=said(_STUDY[rest]) if rest in _STUDY else term(rest))
    return ".".join(said(_TERMS[part]) if part in _TERMS else part for part in name.split("."))


def column_words(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What is declared about a column, with words for the names and values that are ours."""
    return {
        said(_DECLARED[name]) if name in _DECLARED else name: retold(value)
        if name in ("kind", "unit") and isinstance(value, str)
        else value
        for name, value in declared.items()
    }
