"""Entry point of `python -m benchmarks`."""

from benchmarks import BENCHMARKS
from pebr_tf.cli.late_group import LateGroup, run_command

if __name__ == "__main__":
    group = LateGroup(
        BENCHMARKS,
        help="Measure speed, memory and recall; ratios come from one run.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    run_command(group, "python -m benchmarks")
