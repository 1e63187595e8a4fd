"""ScaNN's own files: trained, written in leaf order, and loaded with range search enabled.

ScaNN prunes by `epsilon_distance` (at the end) and `approx_epsilon_distance` (before exact scores
are computed), but its builder offers neither, and each is one number for all queries. Appending 1
to every item and -t to a query makes the dot product cos - t, so that one epsilon of 0 means
"cosine >= t" with each query's own t. Multiplying a query by a factor keeps the sign and rescales
the other epsilon, which gives each query its own margin.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pebr_tf.retrieval.plan import Leaves

# The margin before exact scoring of a query that is not scaled.
APPROXIMATE_EPSILON = 0.01
# K-means on fewer items per leaf makes wide leaves.
SAMPLE_OF_A_LEAF = 250
TRAINING_SAMPLE = 100_000
# Errors along an item count more than errors across it, because they decide on which side of a
# threshold it falls. The value is ScaNN's default.
ANISOTROPIC_THRESHOLD = 0.2
# ScaNN's quantiser learns 16 centres per block; fewer items than this are searched exactly.
LEAST_ITEMS = 256
# ScaNN searches a tree of one leaf wrongly.
LEAST_LEAVES = 2
# Items that repeat a few vectors have no quantisation error, but their codes are still compared
# with tables of rounded products.
LEAST_ERROR = 1e-3

# Our file name -> (ScaNN's asset type, ScaNN's file name).
FILES = {
    "codebook.pb": ("AH_CENTERS", "ah_codebook.pb"),
    "partitioner.pb": ("PARTITIONER", "serialized_partitioner.pb"),
    "tokens.npy": ("TOKENIZATION_NPY", "datapoint_to_token.npy"),
    "codes.npy": ("AH_DATASET_NPY", "hashed_dataset.npy"),
}
CONFIG = "scann_config.pb"
VECTORS = "vectors.npy"


@dataclass(frozen=True)
class TrainedIndex:
    """A trained index folder, and the statistics that plans need.

    Attributes:
      order: [N] the item at each position of the index.
      leaves: Statistics of the leaves.
      error: Deviation of a quantised cosine from the exact one.
    """

    order: np.ndarray
    leaves: Leaves
    error: float


def search_config(count: int, dimension: int, leaves: int, dimensions_per_block: int) -> Any:
    """The ScannConfig of `count` items of `dimension`, the appended coordinate included."""
    from google.protobuf import text_format
    from scann.proto import scann_pb2
    from scann.scann_ops.py import scann_builder

    builder = scann_builder.ScannBuilder(np.empty((0, dimension)), 1, "dot_product")
    builder.tree(leaves, leaves, training_sample_size=min(count, SAMPLE_OF_A_LEAF * leaves))
    builder.score_ah(
        dimensions_per_block,
        anisotropic_quantization_threshold=ANISOTROPIC_THRESHOLD,
        training_sample_size=min(count, TRAINING_SAMPLE),
    )
    builder.reorder(1)
    builder.params["extra"] = {"mutable": False}
    config = text_format.Parse(builder.create_config(), scann_pb2.ScannConfig())
    config.epsilon_distance = 0.0
    config.exact_reordering.approx_epsilon_distance = APPROXIMATE_EPSILON
    return config


def train(
    vectors: np.ndarray, directory: Path, leaves: int, dimensions_per_block: int, threads: int
) -> TrainedIndex:
    """Trains ScaNN on unit vectors [N, n] and writes its files and ours into `directory`.

    Items are written leaf by leaf, so that items that a query reaches together are
    adjacent in memory.
    """
    from scann.scann_ops.py import scann_ops_pybind

    count, dimension = vectors.shape
    augmented = np.ones((count, dimension + 1), np.float32)
    augmented[:, :dimension] = vectors
    config = search_config(count, dimension + 1, leaves, dimensions_per_block)
    searcher = scann_ops_pybind.create_searcher(augmented, str(config), threads)
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        searcher.searcher.serialize(scratch)
        del searcher
        theirs = {name: Path(scratch) / FILES[name][1] for name in FILES}
        tokens = np.load(theirs["tokens.npy"])
        order = np.argsort(tokens, kind="stable")
        np.save(directory / VECTORS, augmented[order])
        np.save(directory / "tokens.npy", tokens[order])
        np.save(directory / "codes.npy", np.load(theirs["codes.npy"], mmap_mode="r")[order])
        for name in ("codebook.pb", "partitioner.pb"):
            theirs[name].replace(directory / name)
    (directory / CONFIG).write_bytes(config.SerializeToString())

    centroids = read_centroids(directory)[:, :dimension]
    return TrainedIndex(
        order=order,
        leaves=Leaves.of(vectors, tokens, centroids),
        error=quantisation_error(directory, centroids),
    )


def read_centroids(directory: Path) -> np.ndarray:
    """[L, n + 1] centroids of the leaves, in the order of their numbers."""
    from scann.partitioning import partitioner_pb2

    partitioner = partitioner_pb2.SerializedPartitioner()
    partitioner.ParseFromString((directory / "partitioner.pb").read_bytes())
    root = partitioner.kmeans.kmeans_tree.root
    centroids = np.array([center.dimension for center in root.centers], np.float32)
    leaf_numbers = np.array([child.leaf_id for child in root.children])
    return centroids[np.argsort(leaf_numbers)]


def quantisation_error(directory: Path, centroids: np.ndarray, sample: int = 5_000) -> float:
    """Standard error of the cosine that ScaNN computes from codes, over query directions."""
    from scann.proto import centers_pb2

    codebook = centers_pb2.CentersForAllSubspaces()
    codebook.ParseFromString((directory / "codebook.pb").read_bytes())
    vectors = np.load(directory / VECTORS, mmap_mode="r")
    chosen = np.linspace(0, len(vectors) - 1, min(sample, len(vectors))).astype(int)
    codes = np.load(directory / "codes.npy", mmap_mode="r")[chosen]
    blocks = [
        np.array([center.feature_value_float for center in block.center], np.float32)
        for block in codebook.subspace_centers
    ]
    decoded = np.concatenate([block[codes[:, i]] for i, block in enumerate(blocks)], axis=1)
    dimension = centroids.shape[1]
    tokens = np.load(directory / "tokens.npy", mmap_mode="r")[chosen]
    apart = vectors[chosen][:, :dimension] - centroids[tokens] - decoded[:, :dimension]
    deviation = np.sqrt((apart.astype(np.float64) ** 2).sum(axis=1).mean() / dimension)
    return max(float(deviation), LEAST_ERROR)


def load(directory: Path) -> Any:
    from google.protobuf import text_format
    from scann.scann_ops import scann_assets_pb2
    from scann.scann_ops.py import scann_ops_pybind

    kinds = {name: kind for name, (kind, _) in FILES.items()} | {VECTORS: "DATASET_NPY"}
    assets = scann_assets_pb2.ScannAssets()
    for name, kind in kinds.items():
        assets.assets.add(
            asset_type=scann_assets_pb2.ScannAsset.AssetType.Value(kind),
            asset_path=str(directory / name),
        )
    return scann_ops_pybind.scann_pybind.ScannNumpy(
        str(directory), text_format.MessageToString(assets)
    )
