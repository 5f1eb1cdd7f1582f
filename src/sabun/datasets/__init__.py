"""Public data sets used in the papers, each with a schema, and the papers' synthetic sets."""

from sabun.datasets.adult import load_adult
from sabun.datasets.dataset import Dataset
from sabun.datasets.ionosphere import load_ionosphere
from sabun.datasets.populations import DensityPaper, KeyValuePopulation, density_paper, keyvalue_population
from sabun.datasets.wdbc import load_wdbc

__all__ = [
    "Dataset",
    "DensityPaper",
    "KeyValuePopulation",
    "density_paper",
    "keyvalue_population",
    "load_adult",
    "load_ionosphere",
    "load_wdbc",
]
