#!/bin/sh
# Set up everything Heimdall needs: setup.sh [STAMP]
#
# Creates .venv with the package and its tools. On Debian and Ubuntu it also installs what is
# missing of Mesa (EGL, GL), PoCL (OpenCL on the CPU), Xvfb and Chromium (tests of the window and
# of the browser preview), when run as root or with a sudo that asks no password; otherwise it
# prints the line to type. Where that leaves no OpenCL, Intel's runtime for CPUs (x86-64) goes into
# .venv, which needs no root.
# STAMP is touched when nothing is missing any more, so that make does not call this again.
set -eu
cd "$(dirname "$0")/.."
venv=.venv
stamp=${1:-$venv/.heimdall-setup}
python=$venv/bin/python

say() { printf '%s\n' "$*" >&2; }
die() { say "setup: $*"; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

permitted() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" = 0 ] || sudo -n true >/dev/null 2>&1
}

apt_install() {
    say "setup: installing $*"
    export DEBIAN_FRONTEND=noninteractive
    # The lists on a fresh machine are missing or old: refresh them only if the install fails.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        "$@" >&2 </dev/null && return
    as_root apt-get update -q >&2 </dev/null
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        "$@" >&2 </dev/null
}

# The command line that installs the given packages, for people.
line_for() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "sudo apt-get install $*"
    else
        echo "install with your system's package manager what Debian calls: $*"
    fi
}

recent_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
        if recent_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# --- Python and the virtual environment -------------------------------------------------------

make_venv() {
    base=$(find_python) || {
        permitted || die "needs Python 3.11 or later; $(line_for python3 python3-venv)"
        apt_install python3 python3-venv
        base=$(find_python) || die "needs Python 3.11 or later, and this system has an older one"
    }
    if ! "$base" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        permitted || die "Python lacks venv; $(line_for python3-venv), then try again"
        apt_install python3-venv
        "$base" -c 'import venv, ensurepip' >/dev/null 2>&1 ||
            die "$base still lacks venv: install the venv package of that very version"
    fi
    say "setup: creating $venv with $("$base" --version 2>&1)"
    "$base" -m venv --clear $venv
}

if ! recent_enough $python || ! $python -m pip --version >/dev/null 2>&1; then
    make_venv
fi
$python -m pip --version >/dev/null 2>&1 || die "$venv has no pip; remove $venv and try again"

say "setup: installing Heimdall and its tools into $venv"
needs_compiler() { # moderngl and glcontext have no wheels for ARM Linux
    [ "$(uname -s)" = Linux ] && [ "$(uname -m)" != x86_64 ] && ! command -v c++ >/dev/null 2>&1
}
compiler="build-essential python3-dev libx11-dev"
if needs_compiler; then
    # shellcheck disable=SC2086  # several words on purpose
    permitted && apt_install $compiler
    needs_compiler && say "setup: packages must be compiled here; $(line_for "$compiler")"
fi
$python -m pip install --quiet --disable-pip-version-check -e '.[dev]' ||
    die "pip could not install the packages (see above); is the package index reachable?"

# --- OpenGL, OpenCL and Xvfb: asked for real, not by package name -----------------------------

has_cv2() { $python -c 'import cv2' >/dev/null 2>&1; }
has_gl() {
    $python -c 'from heimdall.render import open_surface
open_surface((16, 16), headless=True).close()' >/dev/null 2>&1
}
has_opencl() { # in .venv too, where OpenCL's own loader (pyopencl) does not look
    $python -c 'import pyopencl
from heimdall.engine.opencl.device import devices
assert devices()' >/dev/null 2>&1
}
intels_runs_here() { [ "$(uname -m)" = x86_64 ]; }
has_xvfb() { command -v Xvfb >/dev/null 2>&1; }
has_browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null 2>&1

missing() {
    has_cv2 || printf '%s ' libgl1 libglib2.0-0
    has_gl || printf '%s ' libegl1 libgl1-mesa-dri libgl1
    has_opencl || printf '%s ' pocl-opencl-icd
    has_xvfb || printf '%s ' xvfb
}

if [ "$(uname -s)" = Linux ]; then
    packages=$(missing)
    if [ -n "$packages" ] && permitted; then
        # shellcheck disable=SC2086  # several words on purpose
        apt_install $packages || say "setup: apt-get failed"
        packages=$(missing)
    fi
    if ! has_opencl && intels_runs_here; then
        say "setup: no OpenCL by apt-get: Intel's runtime for CPUs goes into $venv instead"
        $python -m pip install --quiet --disable-pip-version-check -e '.[dev,cpu]' ||
            say "setup: pip could not install it (see above)"
        packages=$(missing)
    fi
    if [ -n "$packages" ]; then
        say "setup: still missing: $(line_for "$packages")"
        has_cv2 || die "OpenCV cannot be loaded without these"
        has_gl || die "nothing can be drawn without OpenGL"
        has_opencl || say "setup: without OpenCL the networks run on the CPU by onnxruntime"
        has_xvfb || say "setup: without Xvfb the tests of the window are skipped"
        exit 0 # usable, but look again next time
    fi
    # By itself: where apt-get has no such package (on Ubuntu it is a snap), nothing else suffers.
    if ! has_browser && permitted; then
        apt_install chromium ||
            say "setup: without Chromium the test of the browser preview is skipped"
    fi
fi
touch "$stamp"
say "setup: done"
