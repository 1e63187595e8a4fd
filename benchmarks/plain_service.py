"""A minimal retrieval service, the baseline of `python -m benchmarks serving`.

FastAPI, the query model by tf.saved_model, ScaNN with a fixed number of items, the payload in a
dict; each request is encoded and searched by itself. It gets what costs its author nothing: uvloop,
httptools, orjson, the choice between a handler in a thread pool and one on the event loop, and
as many processes that accept from one socket, as `uvicorn --workers` has.

  python -m benchmarks.plain_service --release DIR --top-k 50
"""

import multiprocessing
import socket
from pathlib import Path

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)

# isort: split
import click
import fastapi
import orjson
import pyarrow.parquet as pq
import scann
import tensorflow as tf
import uvicorn
from pydantic import BaseModel

from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.versions import QUERY_MODEL
from pebr_tf.retrieval import load_index


class PlainRequest(BaseModel):
    """Query texts."""

    queries: list[str]


def application(release: Path, top_k: int, in_threads: bool) -> fastapi.FastAPI:
    """The service."""
    catalogue = EmbeddedCatalogue(release)
    model = tf.saved_model.load(str(release / QUERY_MODEL))
    encode = model.signatures["encode"]
    index = load_index(catalogue.index, verify=False)
    # The settings of ScaNN's own example, scaled to the corpus.
    leaves = max(int(len(index) ** 0.5), 1)
    searcher = (
        scann.scann_ops_pybind.builder(index.vectors, top_k, "dot_product")
        .tree(num_leaves=leaves, num_leaves_to_search=max(leaves // 10, 1))
        .score_ah(2, anisotropic_quantization_threshold=0.2)
        .reorder(2 * top_k)
        .build()
    )
    ids = index.ids.tolist()
    rows = pq.read_table(catalogue.payload).to_pylist()
    payload = {row.pop("item_id"): row for row in rows}
    app = fastapi.FastAPI()

    def answer(request: PlainRequest) -> fastapi.Response:
        vectors = encode(query=tf.constant(request.queries))["embedding"].numpy()
        positions, scores = searcher.search_batched(vectors)
        results = [
            [
                {"item_id": ids[position], "score": score, "fields": payload[ids[position]]}
                for position, score in zip(row.tolist(), row_scores.tolist(), strict=True)
            ]
            for row, row_scores in zip(positions, scores, strict=True)
        ]
        return fastapi.Response(orjson.dumps({"results": results}), media_type="application/json")

    async def answer_on_loop(request: PlainRequest) -> fastapi.Response:
        return answer(request)

    app.post("/v1/retrieve")(answer if in_threads else answer_on_loop)
    return app


@click.command()
@click.option("--release", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--top-k", type=int, required=True)
@click.option("--in-threads/--on-loop", default=True)
@click.option("--workers", type=int, default=1)
def main(release: Path, top_k: int, in_threads: bool, workers: int) -> None:
    """Serve a release and print the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2_048)
    others = [
        multiprocessing.get_context("fork").Process(
            target=serve, args=(listener, release, top_k, in_threads), daemon=True
        )
        for _ in range(workers - 1)
    ]
    for process in others:
        process.start()
    serve(listener, release, top_k, in_threads)
    for process in others:
        process.terminate()


def serve(listener: socket.socket, release: Path, top_k: int, in_threads: bool) -> None:
    """One process; prints the port when it can answer."""
    app = application(release, top_k, in_threads)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        app, access_log=False, log_level="error", loop="uvloop", http="httptools"
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
