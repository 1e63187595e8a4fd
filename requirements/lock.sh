#!/bin/sh
# Resolves requirements/*.in into hash-locked requirements/*.txt; called by `make lock`.
# native.txt is what a release image installs; dev.txt adds the tools for tests and benchmarks.
set -eu
cd "$(dirname "$0")"
uv="$(command -v ../.setup/bin/uv || command -v uv)"
resolve() { "$uv" pip compile --quiet --upgrade --generate-hashes --no-header --python-version 3.10 "$@"; }
resolve native.in --output-file native.txt
resolve dev.in --constraints native.txt --output-file dev.txt
resolve uv.in --universal --output-file uv.txt
