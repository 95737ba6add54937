"""Heimdall for programs in other processes: networks behind the Open Inference Protocol.

The protocol is KServe's v2 (REST and gRPC) with Triton's extensions for binary tensors and for
shared memory, so that the official clients work as they are. What is served is behind ``Models``.
"""

from __future__ import annotations

from heimdall.serve.limits import Limits
from heimdall.serve.models import Models
from heimdall.serve.server import Server

__all__ = ["Limits", "Models", "Server"]
