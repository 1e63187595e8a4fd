"""Entry point of `python -m benchmarks`."""

from benchmarks import BENCHMARKS
from pebr_tf.cli.late_group import late_group, run_command

if __name__ == "__main__":
    group = late_group("Measure speed, memory and recall; ratios come from one run.", BENCHMARKS)
    run_command(group, "python -m benchmarks")
