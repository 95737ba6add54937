"""The networks of TOP's evaluation (Table II), written down from their papers' tables, with their
branches and blocks. Inputs are 3 x 224 x 224. Without classifiers behind the last pooling,
Inception V3 and ResNet-50 then have the 119 and 87 operators, and all three the 13, 5 and 12 blocks
of the table; SqueezeNet has 38, of which the table has 50, and does not say which others there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from heimdall.errors import ConfigError, unknown
from heimdall.lab.simulator.together.layers import IMAGE, Architecture, Builder, LayeredNetwork

_INPUT = (3, 224, 224)


def _resnet_50() -> LayeredNetwork:
    """He et al. 2016, Table 1: the first layers, and four stages of bottlenecks."""
    net = Builder(_INPUT)
    x = net.pool(net.conv(IMAGE, 64, 7, 2), "max", 3, 2, 1)
    for width, bottlenecks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        net.block_ends()
        for index in range(bottlenecks):
            stride = 2 if index == 0 and width > 64 else 1
            y = net.conv(net.conv(net.conv(x, width, 1, stride), width, 3), 4 * width, 1)
            shortcut = net.conv(x, 4 * width, 1, stride) if index == 0 else x
            x = net.relu(net.add(y, shortcut))
    net.mean(x)
    return net.network("ResNet-50")


def _squeezenet() -> LayeredNetwork:
    """Iandola et al. 2016, Table 1."""
    net = Builder(_INPUT)
    x = net.pool(net.conv(IMAGE, 96, 7, 2, pad=False), "max", 3, 2)
    for fire, (squeeze, expand) in enumerate(
        ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)), 2
    ):
        net.block_ends()
        s = net.conv(x, squeeze, 1)
        x = net.concat([net.conv(s, expand, 1), net.conv(s, expand, 3)])
        if fire in (4, 8):
            net.block_ends()
            x = net.pool(x, "max", 3, 2)
    net.block_ends()
    net.mean(net.conv(x, 1000, 1))
    return net.network("SqueezeNet")


def _inception_v3() -> LayeredNetwork:
    """Szegedy et al. 2016, Table 1 and Figs. 5 to 7: the stem, eleven modules, the last pooling."""
    net = Builder(_INPUT)
    x = net.conv(net.conv(IMAGE, 32, 3, 2, pad=False), 32, 3, pad=False)
    x = net.pool(net.conv(x, 64, 3), "max", 3, 2)
    x = net.pool(net.conv(net.conv(x, 80, 1), 192, 3, pad=False), "max", 3, 2)
    for pooled in (32, 64, 64):
        net.block_ends()
        x = _module_of_threes(net, x, pooled)
    net.block_ends()
    x = _smaller_35(net, x)
    for width in (128, 160, 160, 192):
        net.block_ends()
        x = _module_of_sevens(net, x, width)
    net.block_ends()
    x = _smaller_17(net, x)
    for _ in range(2):
        net.block_ends()
        x = _wide_module(net, x)
    net.block_ends()
    net.mean(x)
    return net.network("Inception-V3")


def _module_of_threes(net: Builder, x: int, pooled: int) -> int:
    one = net.conv(x, 64, 1)
    five = net.conv(net.conv(x, 48, 1), 64, 5)
    three = net.conv(net.conv(net.conv(x, 64, 1), 96, 3), 96, 3)
    return net.concat([one, five, three, net.conv(net.pool(x, "avg", 3, 1, 1), pooled, 1)])


def _smaller_35(net: Builder, x: int) -> int:
    three = net.conv(x, 384, 3, 2, pad=False)
    twice = net.conv(net.conv(net.conv(x, 64, 1), 96, 3), 96, 3, 2, pad=False)
    return net.concat([three, twice, net.pool(x, "max", 3, 2)])


def _module_of_sevens(net: Builder, x: int, width: int) -> int:
    one = net.conv(x, 192, 1)
    seven = net.conv(net.conv(net.conv(x, width, 1), width, (1, 7)), 192, (7, 1))
    twice = net.conv(net.conv(net.conv(x, width, 1), width, (7, 1)), width, (1, 7))
    twice = net.conv(net.conv(twice, width, (7, 1)), 192, (1, 7))
    return net.concat([one, seven, twice, net.conv(net.pool(x, "avg", 3, 1, 1), 192, 1)])


def _smaller_17(net: Builder, x: int) -> int:
    three = net.conv(net.conv(x, 192, 1), 320, 3, 2, pad=False)
    seven = net.conv(net.conv(net.conv(x, 192, 1), 192, (1, 7)), 192, (7, 1))
    seven = net.conv(seven, 192, 3, 2, pad=False)
    return net.concat([three, seven, net.pool(x, "max", 3, 2)])


def _wide_module(net: Builder, x: int) -> int:
    one = net.conv(x, 320, 1)
    three = net.conv(x, 384, 1)
    three_parts = [net.conv(three, 384, (1, 3)), net.conv(three, 384, (3, 1))]
    twice = net.conv(net.conv(x, 448, 1), 384, 3)
    twice_parts = [net.conv(twice, 384, (1, 3)), net.conv(twice, 384, (3, 1))]
    pooled = net.conv(net.pool(x, "avg", 3, 1, 1), 192, 1)
    return net.concat([one, *three_parts, *twice_parts, pooled])


ARCHITECTURES: Mapping[str, Architecture] = {
    "Inception-V3": _inception_v3,
    "ResNet-50": _resnet_50,
    "SqueezeNet": _squeezenet,
}


@cache
def network(name: str) -> LayeredNetwork:
    """The network of that name. Raises ConfigError for one that is not written down."""
    if name not in ARCHITECTURES:
        raise ConfigError(unknown("network with a list of operators", name, ARCHITECTURES))
    return ARCHITECTURES[name]()
