"""Networks that say what is in a picture, of 1000 things, on pictures of any side."""

from __future__ import annotations

from heimdall.lab.standins.builder import INPUT, Builder
from heimdall.lab.standins.vision import resnet

CLASSES = 1000


def resnet152(side: int) -> Builder:
    """He et al. 2016, Table 1."""
    net = Builder((1, 3, side, side))
    net.classifier(resnet(net, (3, 8, 36, 3), True)[-1], CLASSES)
    return net


def vgg19(side: int) -> Builder:
    """Simonyan and Zisserman 2015, Table 1, E."""
    net = Builder((1, 3, side, side))
    x = INPUT
    for channels, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            x = net.conv(x, channels, 3, act="Relu")
        x = net.pool(x, 2, 2)
    _, channels, height, width = net.shapes[x]
    x = net.shaped(x, 1, channels * height * width)
    x = net.linear(net.linear(x, 4096, "Relu"), 4096, "Relu")
    net.outputs.append(net.linear(x, CLASSES))
    return net


def densenet201(side: int) -> Builder:
    """Huang et al. 2017, Table 1: layers of 32 channels, each on all of those before it."""
    net = Builder((1, 3, side, side))
    x = net.pool(net.conv(INPUT, 64, 7, 2, act="Relu"), 3, 2, 1)
    for block, layers in enumerate((6, 12, 48, 32)):
        if block:
            slim = net.conv(net.scaled(x, "Relu"), net.channels(x) // 2, 1)
            x = net.pool(slim, 2, 2, kind="AveragePool")
        for _ in range(layers):
            y = net.conv(net.scaled(x, "Relu"), 128, 1, act="Relu")
            x = net.join(x, net.conv(y, 32, 3))
    net.classifier(net.scaled(x, "Relu"), CLASSES)
    return net


def inception_v3(side: int) -> Builder:
    """Szegedy et al. 2016, Table 1, where every convolution keeps the size that has stride 1."""
    net = Builder((1, 3, side, side))
    x = _chain(net, INPUT, (32, 3, 2), (32, 3), (64, 3))
    x = _chain(net, net.pool(x, 3, 2, 1), (80, 1), (192, 3))
    x = net.pool(x, 3, 2, 1)
    for pooled in (32, 64, 64):
        five, three = _chain(net, x, (48, 1), (64, 5)), _chain(net, x, (64, 1), (96, 3), (96, 3))
        x = net.join(_chain(net, x, (64, 1)), five, three, _averaged(net, x, pooled))
    three = _chain(net, x, (64, 1), (96, 3), (96, 3, 2))
    x = net.join(_chain(net, x, (384, 3, 2)), three, net.pool(x, 3, 2, 1))
    for narrow in (128, 160, 160, 192):
        x = _seven(net, x, narrow)
    three = _chain(net, x, (192, 1), (320, 3, 2))
    seven = _chain(net, x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2))
    x = net.join(three, seven, net.pool(x, 3, 2, 1))
    for _ in range(2):
        x = _widest(net, x)
    net.classifier(x, CLASSES)
    return net


Kernel = int | tuple[int, int]
Layer = tuple[int, Kernel] | tuple[int, Kernel, int]


def _chain(net: Builder, x: str, *layers: Layer) -> str:
    """Convolutions one after the other: channels, kernel, and the stride unless it is 1."""
    for layer in layers:
        channels, kernel, stride = layer if len(layer) == 3 else (*layer, 1)
        x = net.conv(x, channels, kernel, stride, act="Relu")
    return x


def _averaged(net: Builder, x: str, channels: int) -> str:
    return _chain(net, net.pool(x, 3, 1, 1, kind="AveragePool"), (channels, 1))


def _seven(net: Builder, x: str, narrow: int) -> str:
    """Its Fig. 6: 7 x 7 as rows and columns."""
    row, column = (1, 7), (7, 1)
    once = _chain(net, x, (narrow, 1), (narrow, row), (192, column))
    twice = _chain(net, x, (narrow, 1), (narrow, column), (narrow, row), (narrow, column))
    twice = _chain(net, twice, (192, row))
    return net.join(_chain(net, x, (192, 1)), once, twice, _averaged(net, x, 192))


def _widest(net: Builder, x: str) -> str:
    """Its Fig. 7: rows beside columns."""
    parts = [_chain(net, x, (320, 1))]
    for y in (_chain(net, x, (384, 1)), _chain(net, x, (448, 1), (384, 3))):
        parts += [_chain(net, y, (384, kernel)) for kernel in ((1, 3), (3, 1))]
    return net.join(*parts, _averaged(net, x, 192))
