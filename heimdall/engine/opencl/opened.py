"""An open device, as planning, compiling and launching see it.

The engine is one; what it hands itself to (networks, their state, the tuner) need not know it.
"""

from __future__ import annotations

from typing import Protocol

import pyopencl as cl

from heimdall.engine.opencl.abilities import Abilities
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.program import Programs
from heimdall.engine.opencl.transfer import Transfer
from heimdall.engine.opencl.tuning import Tuning


class Opened(Protocol):
    """A device with its queue, and what is known of both."""

    device: cl.Device
    abilities: Abilities
    traits: Traits
    times_ops: bool  # events of the queue carry times
    plans_branches: bool  # tensors of independent branches share no memory
    context: cl.Context
    queue: cl.CommandQueue
    transfer: Transfer
    programs: Programs
    tuning: Tuning
