"""What decides how numbers are rounded here, beside the numbers themselves: software, processor, settings of libraries."""

from __future__ import annotations

import os
import platform
import sys

import numpy as np

__all__ = ["surroundings"]


def surroundings() -> list[str]:
    """The same wherever a step comes out the same to the last bit; for a fingerprint, not for readers."""
    from threadpoolctl import threadpool_info

    found = [sys.version, platform.platform(), platform.machine(), np.__version__, str(os.cpu_count())]
    found += [repr(np.show_config(mode="dicts"))]
    settings = sorted(name for name in os.environ if name.startswith(("OMP_", "OPENBLAS_", "MKL_", "NPY_")))
    found += [f"{name}={os.environ[name]}" for name in settings]
    # Which loops a matrix library runs depends on the processor it finds, or is told to find.
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    ours = [library for library in libraries if "numpy" in library["filepath"]] or libraries
    return found + sorted(
        {str([library.get(fact) for fact in ("internal_api", "version", "architecture")]) for library in ours}
    )
