#!/bin/sh
# Resolves requirements/*.in into hash-locked requirements/*.txt; called by `make lock`. Options such
# as `--upgrade-package NAME` are passed on. All locks agree on the version of every package:
#   service.txt    the service's image
#   pipeline.txt   the pipeline's image, which runs on Vertex AI too
#   gpu.txt        the same with the CUDA libraries
#   dev.txt        everything, with the tools for tests and benchmarks
set -eu
cd "$(dirname "$0")"
uv="$(command -v ../.setup/bin/uv || command -v uv)"
resolve() {
    lock="$1"
    shift
    "$uv" pip compile --quiet --generate-hashes --no-header --python-version 3.10 "$@" --output-file "$lock"
}
resolve dev.txt service.in pipeline.in cloud.in experiments.in dev.in --override overrides.in "${@:---upgrade}"
resolve service.txt service.in --constraints dev.txt
resolve pipeline.txt service.in pipeline.in cloud.in --constraints dev.txt
resolve gpu.txt service.in pipeline.in cloud.in gpu.in --constraints dev.txt
resolve uv.txt uv.in --universal --upgrade
