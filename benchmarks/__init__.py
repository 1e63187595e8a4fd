"""Benchmarks: one command each, ratios measured in one run. Not part of the wheel.

Usage: `python -m benchmarks NAME [OPTIONS]`; `python -m benchmarks --help` lists the names.
"""

# Name on the command line -> (module:command, one line of help), in the order of the help.
BENCHMARKS = {
    "distributions": (
        "benchmarks.distributions:main",
        "Thresholds per second, against the paper's quadrature.",
    ),
    "generate": ("benchmarks.generate:main", "Click rows per second and peak memory."),
    "goodbooks-vectors": (
        "benchmarks.goodbooks_vectors:main",
        "Train a model on goodbooks-10k and write its vectors for `retrieval`.",
    ),
    "ingest": ("benchmarks.ingest:main", "ClickLogExampleGen against TFX's CsvExampleGen."),
    "retrieval": (
        "benchmarks.retrieval.command:retrieval",
        "Range search against ScaNN top-k, FAISS, HNSW libraries and brute force.",
    ),
    "scale": (
        "benchmarks.scale:main",
        "Processor time, memory and disk of every component as the data grow.",
    ),
    "serving": ("benchmarks.serving:main", "The service under load, against a plain service."),
    "soak": ("benchmarks.soak:main", "Swaps, killed workers and malformed calls under load."),
    "texts": ("benchmarks.texts:main", "The cost of long item texts, against titles."),
    "training": (
        "benchmarks.training:main",
        "Pairs per second, against tensorflow-recommenders' Retrieval task.",
    ),
}
