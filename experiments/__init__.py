"""Experiments of the paper and beyond it: tables, plots and a page from one command each.

`steps` of an experiment say what must be computed, `results` turns it into tables and plots. This
package imports neither TensorFlow nor Matplotlib until an experiment needs them.
"""

# Name on the command line -> (module, one line of help), in the order of the help.
EXPERIMENTS = {
    "comparison": (
        "experiments.comparison",
        "Precision and recall of every policy at equal average k.",
    ),
    "cutoffs": (
        "experiments.cutoffs",
        "Retrieved items by share kept and query frequency.",
    ),
    "recall-at": ("experiments.recall_at", "Recall of short lists: small k."),
    "corpus-size": (
        "experiments.corpus_size",
        "Towers from 100%, 46% and 23% of the logs.",
    ),
    "losses": ("experiments.losses", "Every loss with the same budget."),
    "ablation": ("experiments.ablation", "What each part of the method adds."),
    "spheres": (
        "experiments.spheres",
        "Retrieved items of three queries, on a sphere.",
    ),
    "law": ("experiments.law", "Whether the law of each query is true."),
    "calibration": (
        "experiments.calibration",
        "Expected and measured recall of the recall knob.",
    ),
    "first-run": (
        "experiments.first_run",
        "What defaults give on many click logs, and on broken towers.",
    ),
}
