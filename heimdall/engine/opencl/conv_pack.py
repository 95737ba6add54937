"""Weights in the order in which the convolution kernels read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FOUR = 4  # input channels a step of conv_grouped.cl


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


class Listed(NamedTuple):
    """Weights of a grouped convolution, and the input channels that they belong to.

    ``channels``: the lists of all groups of outputs, each filled up to whole ``FOUR``s;
    ``begins``: the first four of each list, and the end of the last (int32).
    """

    weights: np.ndarray
    channels: np.ndarray
    begins: np.ndarray


def channel_lists(
    shape: tuple[int, ...], groups: int, lanes: int, outputs: range
) -> list[np.ndarray]:
    """The input channels that ``lanes`` outputs side by side read, of all groups that they belong
    to, for weights of ``shape`` [oc, ic / groups, kh, kw]."""
    each, per_group = shape[0] // groups, shape[1]
    lists = []
    for first in range(outputs.start, outputs.stop, lanes):
        last = min(first + lanes, outputs.stop) - 1
        low, end = first // each * per_group, (last // each + 1) * per_group
        count = -(-(end - low) // FOUR) * FOUR
        # what fills the last four up has no weight; a channel of the list cannot add a NaN to it
        lists.append(np.minimum(np.arange(low, low + count), end - 1))
    return lists


def pack_grouped(weights: np.ndarray, groups: int, lanes: int, outputs: range) -> Listed:
    """[oc, ic / groups, kh, kw] -> [outputs / lanes][four][kh][kw][channel][lanes], flat.

    ``lanes`` outputs side by side share a list of channels (``channel_lists``), with zeros as the
    weights of other groups'.
    """
    oc, per_group, kh, kw = weights.shape
    lists = channel_lists(weights.shape, groups, lanes, outputs)
    packed = []
    for first, channels in zip(outputs[::lanes], lists, strict=True):
        spread = np.zeros((lanes, len(channels), kh, kw), np.float32)
        for lane, output in enumerate(range(first, min(first + lanes, outputs.stop))):
            place = output // (oc // groups) * per_group - channels[0]
            spread[lane, place : place + per_group] = weights[output]
        count = len(channels) // FOUR  # -1 cannot tell where no weight reaches a ConvTranspose pass
        fours = spread.reshape(lanes, count, FOUR, kh, kw).transpose(1, 3, 4, 2, 0)
        packed.append(fours.reshape(-1))
    ends = np.cumsum([0, *(len(channels) // FOUR for channels in lists)])
    return Listed(np.concatenate(packed), np.concatenate(lists), ends.astype(np.int32))


def _lanes(weights: np.ndarray, block: int) -> np.ndarray:
    """Leading axis -> blocks outside, lanes inside."""
    if not weights.size:  # a ConvTranspose pass that no weight reaches
        return np.zeros(0, np.float32)
    channels = weights.shape[0]
    padded = np.zeros((-(-channels // block) * block, *weights.shape[1:]), np.float32)
    padded[:channels] = weights
    blocked = padded.reshape(-1, block, *weights.shape[1:])
    return np.ascontiguousarray(np.moveaxis(blocked, 1, -1)).reshape(-1)
