"""Everything fails now and then: what a soak is run with."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from heimdall.errors import DeviceError
from heimdall.lab.faults.app_code import around_pipelines
from heimdall.lab.faults.chunks import CHANCE, SEED, around_networks
from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.moment import Moment


def _fail_by_chance(moment: Moment) -> None:
    chance = random.Random(SEED)

    def failing(error: type[Exception]) -> Callable[[str, Callable[[], Any]], Any]:
        def around(dnn: str, call: Callable[[], Any]) -> Any:
            if moment.active and chance.random() < CHANCE:
                moment.acted(dnn)
                raise error("injected: by chance")
            return call()

        return around

    around_networks(failing(DeviceError))
    for step in ("prepare", "decode"):
        around_pipelines(step, failing(ValueError))


ALL = Fault("chance", "Chunks, preprocess and decode fail one time in a hundred.", _fail_by_chance)
FAULTS = (ALL,)
