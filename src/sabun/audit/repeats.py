"""No draw comes twice: equal sums in two steps, two groups or two fits get different noise.

The samplers draw as ever while they are listened to. A coin that starts again, a draw that is kept and handed out once more,
or one number spread over several shows as noise that comes out alike where that has no chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sabun.asking.evidence import ROWS, Bench, Inapplicable, Specimen
from sabun.asking.evidence.listening import SAMPLERS, room_modules, together
from sabun.privacy import noise

__all__ = ["independent"]

_NEAR = 2e-3
"""Noise that comes with its sum is alike when as near as that, in units of itself: rounding lies between."""
_SUMS = "rounded_gaussian of sums"
_SMOOTH = "smooth noise"
_LUCK = 12 * math.log(10)
"""Two draws alike by chance: less than once in 10^12."""
_FITS = 60
"""Draws that are alike every second time are alike in all of these less than once in 10^17."""
_WIDE = 1e15
"""Of some hundred numbers with that much noise, two are alike less than once in 10^10."""

Heard = list[tuple[str, float, tuple[float, ...]]]


def independent(bench: Bench, specimen: Specimen) -> str:
    """Fits twice with the coin of the operating system; raises where noise repeats, in one fit or from one to the next.

    Raises:
        Refuted: A draw came twice, or there was none of a class that draws numbers.
        Inapplicable: A choice is all that it draws.
    """
    specimen.fit(specimen.make(random_state=1), ROWS)
    heard: Heard = []
    for module in room_modules():
        _listen(bench, module, heard)
    for smooth in specimen.smooth:
        bench.replace(smooth, "draw", _noted_smooth(heard, vars(smooth)["draw"]))
    specimen.fit(specimen.make(), ROWS)
    once = list(heard)
    specimen.fit(specimen.make(), ROWS)
    if specimen.chooses:
        bench.must(not heard, "it draws numbers, though a choice is said to be all that it draws.")
        raise Inapplicable("it draws a choice and no numbers.")
    bench.must(heard, "no number was drawn at all.")
    pool: dict[str, list[float]] = {}
    compared = 0
    for number, (law, size, drawn) in enumerate(heard):
        for before, (other, width, earlier) in enumerate(heard[:number]):
            same = other == law and width == size and len(earlier) == len(drawn)
            near = _NEAR * size if law == _SUMS else 0.0
            if same and len(drawn) * (math.log(max(size, 1)) if not near else -math.log(_NEAR)) > _LUCK:
                apart = max(abs(x - y) for x, y in zip(drawn, earlier, strict=True))
                bench.must(apart > near, f"draw {number} ({law}) came out as draw {before} did.")
                compared += 1
        if size > _WIDE:
            pool.setdefault(law, []).extend(drawn)
    for law, numbers in pool.items():
        bench.must(len(set(numbers)) == len(numbers), f"{law}: one number came out for two places.")
        compared += len(numbers) > 1
    told = f"{len(heard)} draws of two fits, {sum(len(drawn) for _, _, drawn in heard)} numbers"
    return told if compared else f"{told}, and {_varied(bench, specimen, once, heard)}"


def _varied(bench: Bench, specimen: Specimen, once: Heard, heard: Heard) -> str:
    """Few small draws may come out alike by chance, but not in fit after fit."""
    fits = 2
    while heard[-len(once) :] == once:
        bench.must(fits < _FITS, f"{fits} fits drew the same numbers.")
        specimen.fit(specimen.make(), ROWS)
        fits += 1
    return f"other ones in fit {fits}"


def _listen(bench: Bench, module: Any, heard: Heard) -> None:
    for name in SAMPLERS:
        own = vars(module).get(name)
        if own is None or not callable(own):
            continue
        if own is getattr(noise, name):
            bench.replace(module, name, _noted(heard, name, own))
        elif getattr(own, "__module__", "") == "sabun.learning.gaussian":
            bench.replace(module, name, _noted_sum(heard, own))
    one, several = "rounded_gaussian", "rounded_gaussians"
    if vars(module).get(several) is vars(noise)[several]:
        bench.replace(module, several, together(_noted(heard, one, vars(noise)[one])))


def _noted(heard: Heard, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def listener(parameter: Any, **how: Any) -> Any:
        drawn = original(parameter, **how)
        size = math.sqrt(float(parameter)) if name.endswith("gaussian") else float(parameter)
        heard.append((name, size, tuple(int(number) for number in np.ravel(np.asarray(drawn, dtype=object)))))
        return drawn

    return listener


def _noted_smooth(heard: Heard, original: Callable[..., Any]) -> Callable[..., Any]:
    """Noise whose size is private: that it was drawn is noted, not how wide it is."""

    def listener(*given: Any, **how: Any) -> Any:
        drawn = original(*given, **how)
        heard.append((_SMOOTH, 0.0, tuple(float(number) for number in np.ravel(np.asarray(drawn, dtype=object)))))
        return drawn

    return listener


def _noted_sum(heard: Heard, original: Callable[..., Any]) -> Callable[..., Any]:
    """Noise that comes with its sum: floats of a fine grid, as good as continuous."""

    def listener(centre: Any, *, sigma: float, **how: Any) -> Any:
        known = np.array(centre, dtype=np.float64)
        noisy = original(centre, sigma=sigma, **how)
        grid = np.round((np.asarray(noisy, dtype=np.float64) - known) * 2.0**30)
        heard.append((_SUMS, float(sigma) * 2.0**30, tuple(grid.ravel().tolist())))
        return noisy

    return listener
