"""Weights in the order in which the convolution kernels read them."""

from __future__ import annotations

import numpy as np


def pack_dense(weights: np.ndarray, lanes: int, x_block: int, unroll: int, last: int) -> np.ndarray:
    """[oc, ic, kh, kw] -> [oc / lanes][ic / x_block][kh][kw][channel][lanes], flat.

    ``lanes`` output channels are read side by side. The last input block holds ``last``
    steps of ``unroll`` channels. Missing channels are zeros.
    """
    oc, ic, kh, kw = weights.shape
    groups, blocks = -(-oc // lanes), -(-ic // x_block)
    room = blocks * x_block + unroll  # the last step may reach past the last block's channels
    full = np.zeros((groups * lanes, room, kh, kw), np.float32)
    full[:oc, :ic] = weights
    grouped = full.reshape(groups, lanes, room, kh, kw)
    head = grouped[:, :, : (blocks - 1) * x_block]
    head = head.reshape(groups, lanes, blocks - 1, x_block, kh, kw).transpose(0, 2, 4, 5, 3, 1)
    start = (blocks - 1) * x_block
    tail = grouped[:, :, start : start + last * unroll].transpose(0, 3, 4, 2, 1)
    return np.concatenate([head.reshape(groups, -1), tail.reshape(groups, -1)], axis=1).reshape(-1)


def pack_few(weights: np.ndarray, block: int) -> np.ndarray:
    """[oc, ic, kh, kw] -> [ic / block][kh][kw][oc][block], flat."""
    return _lanes(weights.transpose(1, 2, 3, 0), block)


def pack_depthwise(weights: np.ndarray, block: int) -> np.ndarray:
    """[c, 1, kh, kw] -> [c / block][kh][kw][block], flat."""
    return _lanes(weights[:, 0], block)


def pack_channels(values: np.ndarray | None, channels: int, lanes: int) -> np.ndarray:
    """One value a channel (zeros for None), padded with zeros to whole groups of ``lanes``."""
    padded = np.zeros(-(-channels // lanes) * lanes, np.float32)
    if values is not None:
        padded[:channels] = values
    return padded


def spread_groups(
    weights: np.ndarray, groups: int, lanes: int, x_block: int, x_blocks: int
) -> tuple[np.ndarray, np.ndarray]:
    """A grouped convolution as a dense one in which ``lanes`` outputs share an input window.

    Returns weights [oc padded to lanes, window channels, kh, kw], zero between channels of
    different groups, and the first input block of each window (int32). Windows are as wide
    as the widest one.
    """
    oc, per_group, kh, kw = weights.shape
    out_per_group = oc // groups
    windows = []
    for first in range(0, oc, lanes):
        last = min(first + lanes, oc) - 1
        low = first // out_per_group * per_group
        high = (last // out_per_group + 1) * per_group - 1
        windows.append((low // x_block, high // x_block + 1))
    width = max(stop - start for start, stop in windows)
    starts = [min(start, x_blocks - width) for start, _ in windows]
    spread = np.zeros((len(windows) * lanes, width * x_block, kh, kw), np.float32)
    for channel in range(oc):
        place = channel // out_per_group * per_group - starts[channel // lanes] * x_block
        spread[channel, place : place + per_group] = weights[channel]
    return spread, np.array(starts, np.int32)


def _lanes(weights: np.ndarray, block: int) -> np.ndarray:
    """Leading axis -> blocks outside, lanes inside."""
    if not weights.size:  # a ConvTranspose pass that no weight reaches
        return np.zeros(0, np.float32)
    channels = weights.shape[0]
    padded = np.zeros((-(-channels // block) * block, *weights.shape[1:]), np.float32)
    padded[:channels] = weights
    blocked = padded.reshape(-1, block, *weights.shape[1:])
    return np.ascontiguousarray(np.moveaxis(blocked, 1, -1)).reshape(-1)
