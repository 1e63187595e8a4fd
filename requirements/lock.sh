#!/bin/sh
# Resolves requirements/*.in into hash-locked requirements/*.txt; called by `make lock`.
# native.txt is what an image installs; gpu.txt adds the CUDA libraries of its TensorFlow, dev.txt
# the tools for tests and benchmarks.
set -eu
cd "$(dirname "$0")"
uv="$(command -v ../.setup/bin/uv || command -v uv)"
resolve() { "$uv" pip compile --quiet --upgrade --generate-hashes --no-header --python-version 3.10 "$@"; }
resolve native.in --output-file native.txt
resolve gpu.in --constraints native.txt --output-file gpu.txt
resolve dev.in --constraints native.txt --output-file dev.txt
resolve uv.in --universal --output-file uv.txt
