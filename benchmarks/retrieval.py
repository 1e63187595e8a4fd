"""Range search against ScaNN top-k, FAISS, HNSW libraries and brute force.

    python benchmarks/retrieval.py --help

The same as `pebr bench retrieval`; the code is in pebr_tf/bench, so that an installed package can
measure its user's own vectors.
"""

from pebr_tf.cli.main import main

if __name__ == "__main__":
    import sys

    main(["bench", "retrieval", *sys.argv[1:]])
