#!/bin/sh
# Makes .venv ready: Python 3.10, the locked packages with compiled bytecode, this project editable.
# Called by every make target. Done before: it compares one line and returns. Interrupted: the next
# call begins again, for the line is written last. Needs git, make and any Python 3 with pip.
set -eu
cd "$(dirname "$0")/.."

lock=requirements/dev.txt
venv=.venv
tools=.setup
stamp=$venv/.ready

wanted="$(cat requirements/*.in requirements/dev.txt requirements/uv.txt requirements/setup.sh setup.py | cksum)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

say() { printf 'setup: %s\n' "$*" >&2; }

is_310() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 10))' >/dev/null 2>&1; }

# A pyenv shim fails when the version that .python-version names is missing: try, do not trust.
find_310() {
    for candidate in python3.10 python3 python \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.10*/bin/python \
        "$(pyenv root 2>/dev/null || true)"/versions/3.10*/bin/python; do
        if is_310 "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    return 1
}

find_uv() {
    for candidate in "$tools/bin/uv" uv; do
        if "$candidate" --version >/dev/null 2>&1; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# Any Python 3 will do to fetch uv.
bootstrap_uv() {
    for candidate in "$@" python3 python "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python /usr/bin/python3; do
        if [ -n "$candidate" ] && "$candidate" -m pip --version >/dev/null 2>&1; then
            say "fetching uv"
            if "$candidate" -m pip install --quiet --disable-pip-version-check --no-deps \
                --no-warn-script-location --root-user-action=ignore \
                --require-hashes --upgrade --target "$tools" -r requirements/uv.txt; then
                return 0
            fi
        fi
    done
    say "uv must be on PATH, or a Python 3 with pip that can install it; neither was found."
    exit 2
}

python="$(find_310 || true)"
uv="$(find_uv || true)"
if [ -z "$uv" ]; then
    bootstrap_uv "$python"
    uv="$(find_uv)"
fi
if [ -z "$python" ]; then
    python="$("$uv" python find 3.10 2>/dev/null || true)"
fi
if [ -z "$python" ] && "$uv" python install --quiet 3.10 >/dev/null 2>&1; then
    python="$("$uv" python find 3.10)"
fi
if [ -z "$python" ]; then
    say "Python 3.10 is required and was not found on PATH, in pyenv or with uv; get it with 'pyenv install 3.10', 'uv python install 3.10' or your system's package manager, then run make again."
    exit 2
fi

rm -f "$stamp"
if ! is_310 "$venv/bin/python"; then
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$uv" venv --quiet --no-project --python "$python" "$venv"
fi
say "installing the locked packages (about a minute the first time)"
"$uv" pip sync --quiet --compile-bytecode --require-hashes --python "$venv/bin/python" "$lock"
"$uv" pip install --quiet --no-deps --no-build-isolation --python "$venv/bin/python" --editable .
printf '%s\n' "$wanted" >"$stamp"
say "ready"
