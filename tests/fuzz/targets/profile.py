"""Profiles and what else is kept as JSON: read as a cache is, and used."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np

from heimdall.analyzer.partition import strategies
from heimdall.analyzer.profile import NetworkProfile, OpProfile, ProfileKey
from heimdall.analyzer.profile_file import from_json, from_table, to_json
from heimdall.engine.opencl import abilities, tuning
from heimdall.engine.opencl.abilities import Abilities
from heimdall.engine.opencl.launch import Traits
from heimdall.inspection import describe_chunks, describe_profile
from heimdall.system import findings, paths
from tests.fuzz.damage import in_bytes, in_json, pick
from tests.fuzz.target import FindingError, Target

GAPS_NS = (1, 1_000_000, 28_000_000)
_KINDS = ("profile", "tuning", "abilities")


class Fuzzed(Target):
    """A file that cannot be used is never an error: what was in it is found out again."""

    suffix = ".json"

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        kind = pick(_KINDS if random.random() < 0.3 else _KINDS[:1], random)
        value = _seed(kind)
        raw = json.dumps(value).encode()
        return kind, in_bytes(raw, random) if random.random() < 0.1 else in_json(value, random)

    def run(self, name: str, raw: bytes) -> str:
        file = self.folder / f"damaged{self.suffix}"
        file.write_bytes(raw)
        if name == "abilities":
            return "read" if abilities.read(file) is not None else "told, and not used"
        if name == "tuning":
            return self._tune(raw)
        profile = findings.read(file, from_table, "it is measured again")
        if profile is None:
            return "told, and not used"
        if from_json(to_json(profile)) != profile:
            raise FindingError("it is another one when it was written and read")
        self.stage = "use"
        describe_profile(profile)
        for strategy in strategies():
            for gap_ns in GAPS_NS:
                chunks = profile.partition(gap_ns, strategy, margin_ns=1000, ops_per_chunk=2)
                describe_chunks(profile, chunks)
                if [c.start for c in chunks[1:]] != [c.end for c in chunks[:-1]]:
                    raise FindingError(f"{strategy} leaves gaps between chunks")
        return "used"

    def _tune(self, raw: bytes) -> str:
        known = tuning.Tuning("device", "driver", Traits("cpu"))
        paths.replace_file(known.path, raw)
        again = tuning.Tuning("device", "driver", Traits("cpu"))
        again.chosen(list(json.loads(json.dumps(_seed("tuning")["choices"]))))
        again.save()
        return "read" if again.version else "told, and not used"


@cache
def _seed(kind: str) -> Any:
    if kind == "abilities":
        found = Abilities(prefetch=True, ways=("map", "copy"), lacks=(("half", "why"),))
        return {"schema": abilities.SCHEMA, "device": "a device", "abilities": asdict(found)}
    if kind == "tuning":
        table = json.loads((paths.PROFILES / "tuning" / "avx512-1.json").read_bytes())
        few = dict(list(table["choices"].items())[:6])
        return {"schema": tuning.SCHEMA, "choices": few}
    key = ProfileKey("0" * 64, "opencl", "1", "a device", "1.0", "hardware", "a CPU", "1.20")
    ops = [
        OpProfile(f"op {n}", "Conv", 70_000 * n, n % 5 == 3, 10**6, 4096, n % 3, 512)
        for n in range(12)
    ]
    profile = NetworkProfile("net", key, tuple(ops), 9000, 5_000_000, 12_000_000, 5000, 800)
    return json.loads(to_json(profile))
