#!/bin/sh
# Resolves requirements/*.in into hash-locked requirements/*.txt; called by `make lock`. Options such
# as `--upgrade-package NAME` are passed on. There are two sets of versions:
#   native.txt     Python 3.10: everything, with the tools for tests and benchmarks
#   modern.txt     Python 3.11 to 3.13: the same; TFX in it needs glibc 2.39
# These agree with modern.txt on the version of every package:
#   service.txt    the service's image, which needs no glibc newer than 2.36
#   pipeline.txt   the pipeline's image, which runs on Vertex AI too
#   gpu.txt        the same with the CUDA libraries
set -eu
cd "$(dirname "$0")"
uv="$(command -v ../.setup/bin/uv || command -v uv)"
resolve() {
    lock="$1"
    shift
    "$uv" pip compile --quiet --generate-hashes --no-header "$@" --output-file "$lock"
}
# One lock for three versions of Python, on the platform that pyproject.toml names: what all packages
# say of it is left out.
modern() {
    resolve "$@" --universal --fork-strategy fewest --python-version 3.11
    platform="platform_machine == 'x86_64' and platform_python_implementation == 'CPython' and sys_platform == 'linux'"
    sed -i "s/ and $platform//; s/ ; python_full_version < '3.14'\( and implementation_name != 'PyPy'\)* / /" "$1"
}

everything="service.in pipeline.in cloud.in experiments.in dev.in --override overrides.in"
resolve native.txt $everything --python-version 3.10 "${@:---upgrade}"
modern modern.txt $everything "${@:---upgrade}"
modern service.txt service.in --constraints modern.txt
modern pipeline.txt service.in pipeline.in cloud.in --constraints modern.txt
modern gpu.txt service.in pipeline.in cloud.in gpu.in --constraints modern.txt
resolve uv.txt uv.in --universal "${@:---upgrade}"
