#!/bin/sh
# Makes .venv ready: Python, the locked packages with compiled bytecode, this project editable. Called
# by every make target. There are two sets of versions, and PEBR_SET=native|modern chooses one:
#   modern    Python 3.11 to 3.13 and glibc 2.39 or later; taken where the machine has both
#   native    Python 3.10; taken elsewhere
# `setup.sh service` makes .venv-modern for `make test-modern` instead: the lock of the service's
# image and what the tests need, on Python 3.13. Without that it says so and does nothing.
# Done before: it compares one line and returns. Interrupted: the next call begins again, for the
# line is written last. Needs git, make and any Python 3 with pip.
set -eu
cd "$(dirname "$0")/.."

what="${1:-${PEBR_SET:-}}"
case "$what" in
service) venv=.venv-modern ;;
*) venv=.venv ;;
esac
tools=.setup
stamp=$venv/.ready

wanted="$what $(cat requirements/*.in requirements/*.txt requirements/setup.sh setup.py | cksum)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

say() { printf 'setup: %s\n' "$*" >&2; }

# Whether $2 is a Python of one of the versions $1.
is_python() {
    "$2" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] not in '$1'.split())" >/dev/null 2>&1
}

# A pyenv shim fails when the version that .python-version names is missing: try, do not trust.
find_python() {
    for version in $1; do
        for candidate in "python$version" python3 python \
            "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python \
            "$(pyenv root 2>/dev/null || true)/versions/$version".*/bin/python; do
            if is_python "$version" "$candidate"; then
                "$candidate" -c 'import sys; print(sys.executable)'
                return 0
            fi
        done
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

glibc="$(getconf GNU_LIBC_VERSION 2>/dev/null || echo "no glibc")"
new_glibc() { [ "${glibc#glibc 2.}" -ge 39 ] 2>/dev/null; }

newer="3.13 3.12 3.11"
case "$what" in
native | modern) set=$what why="PEBR_SET asks for it" ;;
service) set=service why="for make test-modern" ;;
"")
    set=native
    if ! new_glibc; then
        why="modern needs glibc 2.39, this machine has $glibc"
    elif ! find_python "$newer" >/dev/null; then
        why="modern needs Python 3.11 to 3.13, which was not found"
    else
        set=modern why="this machine has $glibc"
    fi
    ;;
*)
    say "PEBR_SET must be native or modern. Received: $what."
    exit 2
    ;;
esac
if [ "$set" = modern ] && ! new_glibc; then
    say "PEBR_SET=modern requires glibc 2.39 or later. Received: $glibc."
    exit 2
fi
case "$set" in
native) versions=3.10 lock=native ;;
modern) versions=$newer lock=modern ;;
service) versions=3.13 lock=service ;;
esac

python="$(find_python "$versions" || true)"
uv="$(find_uv || true)"
if [ -z "$uv" ]; then
    bootstrap_uv "$python"
    uv="$(find_uv)"
fi
first="${versions%% *}"
if [ -z "$python" ]; then
    python="$("$uv" python find "$first" 2>/dev/null || true)"
fi
if [ -z "$python" ] && [ "$set" = service ]; then
    say "skipped: Python 3.13 was not found on PATH, in pyenv or with uv."
    rm -rf "$venv"
    exit 0
fi
if [ -z "$python" ] && "$uv" python install --quiet "$first" >/dev/null 2>&1; then
    python="$("$uv" python find "$first")"
fi
if [ -z "$python" ]; then
    say "Python $first is required and was not found on PATH, in pyenv or with uv; get it with 'pyenv install $first', 'uv python install $first' or your system's package manager, then run make again."
    exit 2
fi

rm -f "$stamp"
say "set $set, $("$python" --version): $why"
if ! is_python "$versions" "$venv/bin/python"; then
    rm -rf "$venv"
    "$uv" venv --quiet --no-project --python "$python" "$venv"
fi
say "installing the locked packages in $venv (about a minute the first time)"
"$uv" pip sync --quiet --compile-bytecode --require-hashes --python "$venv/bin/python" "requirements/$lock.txt"
if [ "$set" = service ]; then
    "$uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" \
        --requirements requirements/dev.in cryptography matplotlib --constraints requirements/modern.txt
fi
"$uv" pip install --quiet --no-deps --no-build-isolation --python "$venv/bin/python" --editable .
printf '%s\n' "$wanted" >"$stamp"
say "ready"
