"""How fast it is, as ratios in one run on one machine: ``python -m benchmarks``."""
