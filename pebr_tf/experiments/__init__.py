"""Experiments of the paper and beyond it: tables, plots and a page from one command each.

`steps` of an experiment say what must be computed, `results` turns it into tables and plots. This
package imports neither TensorFlow nor Matplotlib until an experiment needs them.
"""

# Name on the command line -> (module, one line of help), in the order of the help.
EXPERIMENTS = {
    "comparison": (
        "pebr_tf.experiments.comparison",
        "Precision and recall of every policy at equal average k.",
    ),
    "cutoffs": (
        "pebr_tf.experiments.cutoffs",
        "Retrieved items by share kept and query frequency.",
    ),
    "recall-at": ("pebr_tf.experiments.recall_at", "Recall of short lists: small k."),
    "corpus-size": (
        "pebr_tf.experiments.corpus_size",
        "Towers from 100%, 46% and 23% of the logs.",
    ),
    "losses": ("pebr_tf.experiments.losses", "Every loss with the same budget."),
    "ablation": ("pebr_tf.experiments.ablation", "What each part of the method adds."),
    "spheres": (
        "pebr_tf.experiments.spheres",
        "Retrieved items of three queries, on a sphere.",
    ),
    "calibration": (
        "pebr_tf.experiments.calibration",
        "What the recall knob promises and keeps.",
    ),
}
