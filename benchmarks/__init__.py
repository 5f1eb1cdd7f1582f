"""Speed and accuracy beside other libraries, every figure a ratio in one run: `python -m benchmarks [ROOM ...]`."""
