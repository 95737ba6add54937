"""How what is drawn mixes with what is there, as ``ctx.blend_func`` takes it."""

from __future__ import annotations

from typing import Any

import moderngl

OVER = (moderngl.ONE, moderngl.ONE_MINUS_SRC_ALPHA)  # of premultiplied colours
MIX: Any = (moderngl.SRC_ALPHA, moderngl.ONE_MINUS_SRC_ALPHA)  # of colours with their opacity
# Of those, on premultiplied ones; 2% slower on llvmpipe, so only where what is there has opacity.
PREMULTIPLYING: Any = (*MIX, *OVER)
ERASE = (moderngl.ZERO, moderngl.ONE_MINUS_SRC_ALPHA)  # what is there, as far as this is opaque
