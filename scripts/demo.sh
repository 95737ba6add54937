#!/bin/sh
# The shopping app: in a window where there is a display, else 15 s into out/.
set -eu
cd "$(dirname "$0")/.."
heimdall=.venv/bin/heimdall

if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || [ "$(uname -s)" = Darwin ]; then
    exec $heimdall run shopping "$@"
fi
mkdir -p out
echo "No display: drawing 15 s without a window." >&2
$heimdall run shopping --headless --seconds 15 \
    --record out/shopping.mp4 --screenshot out/shopping.png "$@"
echo "Written: out/shopping.mp4 and out/shopping.png"
