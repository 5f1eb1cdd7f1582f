"""What the key-value paper prints, and what is wrong with it."""

from __future__ import annotations

__all__ = [
    "BY_EPSILON",
    "BY_SIZE",
    "CONCLUSION",
    "EPSILON",
    "EPSILONS",
    "ERRATA",
    "EXAMPLE",
    "NOTE_MEANS",
    "PEOPLE",
    "SIZES",
    "TABLE_1",
    "TITLE",
]

TITLE = "Horigome, Kikuchi, Yu: Improvement of Local Differential Privacy algorithm PrivKV for key-value datasets"
EPSILONS = (0.1, 0.5, 1, 2, 3, 4, 5)
EPSILON = 2
PEOPLE = 100_000
CONCLUSION = 10_000
"""The number of people in the gains of section 5; tables 2 to 4 have `PEOPLE`."""
EXAMPLE = 0.387455
"""The probability in the numerical example of section 3.2."""
SIZES = (1_000, 5_000, 10_000, 30_000, 50_000, 75_000, 100_000, 500_000)

TABLE_1 = {
    "gaussian": (0.49506, 0.10926, -0.00987, 0.43702),
    "power": (0.20660, 0.062901, -0.58681, 0.25160),
    "linear": (0.51, 0.08330, 0.0, 0.34694),
}

BY_EPSILON: dict[str, dict[str, tuple[float, ...]]] = {
    "gaussian": {
        "EM": (756.67, 63.939, 18.075, 4.636, 2.018, 1.626, 1.147),
        "PrivKV": (1921.72, 84.628, 22.587, 4.766, 2.324, 1.723, 1.319),
        "PrivKVM (c=3)": (1472.77, 75.394, 26.212, 6.248, 2.508, 1.673, 1.172),
    },
    "power": {
        "EM": (671.25, 55.478, 18.578, 4.876, 1.591, 1.359, 0.973),
        "PrivKV": (2170.25, 84.833, 19.274, 5.497, 2.587, 1.394, 1.019),
        "PrivKVM (c=3)": (851.21, 62.403, 23.182, 5.254, 2.420, 1.365, 0.992),
    },
    "linear": {
        "EM": (602.83, 70.345, 16.022, 5.618, 2.523, 1.502, 1.282),
        "PrivKV": (1885.28, 92.988, 20.173, 7.404, 2.790, 1.943, 1.428),
        "PrivKVM (c=3)": (1462.74, 82.794, 18.440, 6.157, 2.597, 1.913, 1.279),
    },
}

BY_SIZE: dict[str, dict[str, tuple[float, ...]]] = {
    "gaussian": {
        "EM": (476.25, 107.26, 36.086, 16.732, 9.414, 6.519, 4.635, 1.823),
        "PrivKV": (527.91, 110.05, 51.430, 18.361, 11.552, 7.182, 4.765, 2.473),
        "PrivKVM (c=3)": (612.90, 137.27, 62.515, 18.869, 12.242, 7.489, 6.248, 2.034),
    },
    "power": {
        "EM": (346.71, 72.822, 39.234, 13.459, 9.079, 6.534, 4.876, 1.363),
        "PrivKV": (543.28, 99.441, 51.115, 17.552, 12.198, 7.383, 5.497, 1.991),
        "PrivKVM (c=3)": (424.72, 95.245, 62.975, 15.104, 12.236, 6.996, 5.254, 1.534),
    },
    "linear": {
        "EM": (404.47, 89.921, 54.165, 17.995, 10.482, 6.549, 5.618, 1.802),
        "PrivKV": (538.94, 118.34, 69.998, 19.334, 15.932, 7.801, 7.404, 2.003),
        "PrivKVM (c=3)": (733.46, 113.03, 56.959, 19.913, 15.133, 8.607, 6.157, 1.906),
    },
}

NOTE_MEANS = "The paper prints no numbers for this figure and labels it MAE; its text says MSE. Bars are two standard errors."

ERRATA = (
    "The estimator of d-ary randomized response is (f' - nq)/(p - q) with q = 1/(e^epsilon + d - 1); the second form "
    "printed holds for "
    "d = 2 only, and 1 - p is the probability of any lie, not of one.",
    "Harmony's mean is C (m1 - m2)/n with C = (e^epsilon + 1)/(e^epsilon - 1); the printed one leaves C out, and m2 is "
    "n - m1, not 1 - m1.",
    "PrivKV's frequency must be divided by the number of reports about the key, not by n, or it is off by the number of keys.",
    "PrivKV's mean must use the number of non-empty reports; as printed it tends to p f m. In Ye et al.'s own form it "
    "is still pulled to 0 "
    "by the fake values of people without the key.",
    "EM's mean must be divided by the estimated frequency, not by n, and its average runs over the reports about the key.",
    "The four-state model of EM has rank 3: counts determine the frequency but not the mean, and the result depends on "
    "the start.",
    "The stopping rule on the change per iteration is no test of convergence; at epsilon 0.1 it stops far from the optimum.",
    "The composition theorem gives an upper bound only: PrivKV with e1 = e2 = epsilon/2 is more private than stated, by "
    "25 to 38 %.",
    "PrivKVM needs the published mean clipped to [-1, 1] before the next round; e1 = 0 means an empty report half of the time.",
    "The power-law formula is misprinted; (1 + 0.01x)^-11 gives the moments of table 1.",
    "Tables 5 to 7 count people in thousands, not in tens of thousands; the conclusion says n = 10^4 of gains for which "
    "the paper has tables at n = 10^5 alone.",
    "The improvement of 60.62 % attributed to the linear set is the Gaussian one (linear: 68.02 %); the average of 69.5 % "
    "(stated for n = 10^4) is 65.9 % in tables 2 to 4 (n = 10^5).",
    "Table 4 has PrivKVM (1.279) below EM (1.282) at epsilon 5, where the text says that EM is best at every epsilon; at a "
    "large epsilon the order is chance.",
)
