#!/usr/bin/env bash
# tritonclient 2.73.0 with protobuf 6.30.0 and grpcio 1.81.1, Python 3.11.
# Guess: versions that the package's own metadata allows can be imported together.
# Seen: its metadata allows protobuf 6.30.0, its generated code needs 6.33.5 or later: the import of
# tritonclient.grpc ends in a VersionError. An environment that has 6.30 already keeps it, for pip
# sees nothing to do. Who depends on tritonclient has to bound protobuf himself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
python=$folder/venv/bin/python
"$python" -m pip install -q --only-binary :all: \
    "tritonclient[grpc]==2.73.0" protobuf==6.30.0 grpcio==1.81.1
"$python" -m pip check && echo "pip check: no broken requirements"
said=$("$python" -c "import tritonclient.grpc" 2>&1 | tail -1) || true
echo "import: $said"
case $said in
    *VersionError*6.33.5*) echo "as before" ;;
    *) echo "changed" && exit 1 ;;
esac
