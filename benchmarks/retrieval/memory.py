"""Memory that a loaded index holds, measured in a process of its own.

    python -m benchmarks.retrieval.memory INDEX

prints the bytes an item. In a process that has built the index before, freed memory is used again
and nothing seems to be needed. Pages of mapped files do not count: the system may drop them.
"""

import os
import subprocess
import sys
from pathlib import Path


def bytes_per_item(directory: Path) -> float:
    """Asks another process."""
    command = [sys.executable, "-m", "benchmarks.retrieval.memory", str(directory)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _held() -> int:
    """Bytes of this process that no file stands behind."""
    resident, shared = Path("/proc/self/statm").read_text(encoding="ascii").split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Loads the index that the command names."""
    from scann.scann_ops.py import scann_ops_pybind  # noqa: F401  (its own memory does not count)

    from pebr_tf.retrieval import load_index

    before = _held()
    searcher = load_index(Path(sys.argv[1]), verify=False)
    print((_held() - before) / len(searcher))


if __name__ == "__main__":
    main()
