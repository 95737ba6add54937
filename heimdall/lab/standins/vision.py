"""XRBench's networks that look at pictures, after the architectures that its paper names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heimdall.lab.standins.builder import INPUT, Builder

# Inverted residuals: (expansion, channels, blocks, stride of the first, kernel).
Stages = Sequence[tuple[float, int, int, int, int]]
_FBNET_C: Stages = (
    (1, 16, 1, 1, 3), (6, 24, 1, 2, 3), (1, 24, 2, 1, 3), (6, 32, 4, 2, 5), (6, 64, 4, 2, 5),
    (6, 112, 4, 1, 5), (6, 184, 4, 2, 5), (6, 352, 1, 1, 3),
)  # fmt: skip
_EFFICIENTNET_LITE3: Stages = (
    (1, 24, 2, 1, 3), (6, 32, 3, 2, 3), (6, 48, 3, 2, 5), (6, 96, 5, 2, 3), (6, 136, 5, 1, 5),
    (6, 232, 6, 2, 5), (6, 384, 2, 1, 3),
)  # fmt: skip
_FBNET_V3A: Stages = (
    (1, 16, 2, 1, 3), (4, 24, 4, 2, 5), (4, 40, 5, 2, 5), (4, 72, 5, 2, 3), (5, 120, 6, 1, 5),
)  # fmt: skip
_FBNET_V3A_HEAD: Stages = ((6, 184, 6, 2, 3), (6, 200, 1, 1, 5))
_SQUEEZED = frozenset({40, 120, 184})


def ritnet() -> Builder:
    """Chaudhary et al. 2019: dense blocks of 32 channels, four times down and up again; an eye in
    four classes."""
    net = Builder((1, 1, 96, 160))
    x, skipped = INPUT, []
    for level in range(5):
        x = net.pool(x, 2, 2, kind="AveragePool") if level else x
        first = net.conv(x, 32, 3, act="LeakyRelu")
        second = _two(net, net.join(x, first))
        x = _two(net, net.join(x, first, second))
        skipped.append(x)
    for skip in reversed(skipped[:-1]):
        both = net.join(net.up(x), skip)
        x = _two(net, net.join(both, _two(net, both)))
    net.outputs.append(net.conv(x, 4, 1))
    return net


def _two(net: Builder, x: str) -> str:
    """1 x 1, then 3 x 3."""
    return net.conv(net.conv(x, 32, 1), 32, 3, act="LeakyRelu")


def fbnet_c() -> Builder:
    """Wu et al. 2019, Table 8, on the part of an eye's picture that EyeCoD cuts out: its gaze."""
    net = Builder((1, 1, 96, 160))
    x = net.conv(INPUT, 16, 3, 2, act="Relu")
    *_, last = _stages(net, x, _FBNET_C, "Relu")
    net.classifier(net.conv(last, 1984, 1, act="Relu"), 3)
    return net


def _stages(
    net: Builder, x: str, stages: Stages, act: str, squeezed: bool = False
) -> Iterator[str]:
    """What each stage ends with."""
    for expand, channels, count, first, kernel in stages:
        for index in range(count):
            gate = squeezed and channels in _SQUEEZED
            x = net.inverted(x, expand, channels, 1 if index else first, kernel, act, gate)
        yield x


def resnet(net: Builder, blocks: Sequence[int], bottleneck: bool) -> list[str]:
    """He et al. 2016, Table 1: what its four stages end with."""
    x, found = net.pool(net.conv(INPUT, 64, 7, 2, act="Relu"), 3, 2, 1), []
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for index in range(count):
            stride = 2 if stage and not index else 1
            out = 4 * width if bottleneck else width
            if bottleneck:
                y = net.conv(net.conv(x, width, 1, act="Relu"), width, 3, stride, act="Relu")
                y = net.conv(y, out, 1)
            else:
                y = net.conv(net.conv(x, width, 3, stride, act="Relu"), out, 3)
            same = stride == 1 and net.channels(x) == out
            x = net.plus(y, x if same else net.conv(x, out, 1, stride), "Relu")
        found.append(x)
    return found


def rgbd_200() -> Builder:
    """Ma and Karaman 2018: ResNet-18 on a picture with some depths, and four up-projections."""
    net = Builder((1, 4, 224, 320))
    x = net.conv(resnet(net, (2, 2, 2, 2), False)[-1], 256, 1, act="Relu")
    for channels in (128, 64, 32, 16):
        x = net.up(x)
        y = net.conv(net.conv(x, channels, 5, act="Relu"), channels, 3)
        x = net.plus(y, net.conv(x, channels, 5), "Relu")
    net.outputs.append(net.up(net.conv(x, 1, 3)))
    return net


def midas_small() -> Builder:
    """MiDaS v2.1 small (Ranftl et al. 2020): EfficientNet-Lite3, and four fusions to depth."""
    net = Builder((1, 3, 256, 256))
    x = net.conv(INPUT, 32, 3, 2, act="Clip")
    ends = list(_stages(net, x, _EFFICIENTNET_LITE3, "Clip"))
    x = net.conv(ends[6], 512, 3)
    for end, channels in ((ends[4], 256), (ends[2], 128), (ends[1], 64)):
        x = net.conv(net.up(_residual(net, x)), channels, 1)
        x = net.plus(x, _residual(net, net.conv(end, channels, 3)))
    x = net.conv(net.up(net.conv(_residual(net, x), 64, 1)), 32, 3)
    net.outputs.append(net.conv(net.conv(net.up(x), 32, 3, act="Relu"), 1, 1, act="Relu"))
    return net


def _residual(net: Builder, x: str) -> str:
    channels = net.channels(x)
    return net.plus(x, net.conv(net.conv(net.act(x, "Relu"), channels, 3, act="Relu"), channels, 3))


def faster_rcnn() -> Builder:
    """D2go's Faster R-CNN on FBNetV3-A (Dai et al. 2021). Its hundred regions of interest lie side
    by side in one picture here: the same work, without cutting them out."""
    net = Builder((1, 3, 224, 320))
    x = net.conv(INPUT, 16, 3, 2, act="HardSwish")
    *_, shared = _stages(net, x, _FBNET_V3A, "HardSwish", squeezed=True)
    proposals = net.conv(shared, 120, 3, groups=120, act="Relu")
    net.outputs += [net.conv(proposals, 15 * each, 1) for each in (1, 4)]
    regions = net.resize(shared, 60, 60)
    *_, y = _stages(net, regions, _FBNET_V3A_HEAD, "HardSwish", squeezed=True)
    each = net.pool(y, 3, 3, kind="AveragePool")
    net.outputs += [net.conv(each, channels, 1) for channels in (81, 320)]
    return net


def plane_rcnn() -> Builder:
    """PlaneRCNN (Liu et al. 2019) on a quarter of its picture: ResNet-101, a pyramid of features,
    proposals, and what sixteen planes are."""
    net = Builder((1, 3, 128, 160))
    x, levels = "", []
    for end in reversed(resnet(net, (3, 4, 23, 3), True)):
        level = net.conv(end, 256, 1)
        x = net.plus(net.up(x), level) if x else level
        levels.append(net.conv(x, 256, 3))
    for level in levels:
        proposals = net.conv(level, 512, 3, act="Relu")
        net.outputs += [net.conv(proposals, each, 1) for each in (6, 12)]
    planes = net.resize(levels[-1], 28, 28)
    y = net.conv(net.conv(planes, 256, 3, act="Relu"), 1024, 7, 7, act="Relu")
    net.outputs += [net.conv(net.conv(y, 1024, 1, act="Relu"), each, 1) for each in (8, 32, 3)]
    return net


def hand_graph() -> Builder:
    """Ge et al. 2019 on half of their picture: two hourglasses that find the joints, residual
    blocks, and convolutions on the graph of a hand's mesh, 80 to 1280 vertices."""
    net = Builder((1, 3, 128, 128))
    x = net.conv(INPUT, 64, 7, 2, act="Relu")
    x = net.pool(_bottleneck(net, x, 128), 2, 2)
    x = _bottleneck(net, _bottleneck(net, x, 128), 256)
    for _ in range(2):
        y = net.conv(_bottleneck(net, _hourglass(net, x, 4), 256), 256, 1, act="Relu")
        heat = net.conv(y, 21, 1)
        x = net.plus(x, net.plus(net.conv(y, 256, 1), net.conv(heat, 256, 1)))
    for _ in range(4):
        x = net.pool(_bottleneck(net, x, 256), 2, 2)
    net.outputs += [heat, _mesh(net, net.shaped(x, 1, 4 * 256))]
    return net


def _bottleneck(net: Builder, x: str, channels: int) -> str:
    y = net.conv(net.conv(x, channels // 2, 1, act="Relu"), channels // 2, 3, act="Relu")
    short = x if net.channels(x) == channels else net.conv(x, channels, 1)
    return net.plus(net.conv(y, channels, 1), short, "Relu")


def _hourglass(net: Builder, x: str, depth: int) -> str:
    """Newell et al. 2016: down and up again, beside what stays as large as it is."""
    low = _bottleneck(net, net.pool(x, 2, 2), 256)
    low = _hourglass(net, low, depth - 1) if depth > 1 else _bottleneck(net, low, 256)
    return net.plus(_bottleneck(net, x, 256), net.up(_bottleneck(net, low, 256)))


def _mesh(net: Builder, features: str) -> str:
    """What each vertex is, mixed with its neighbours, as channels x vertices."""
    x = net.shaped(net.linear(features, 64 * 80, "Relu"), 1, 64, 80)
    for vertices in (80, 320, 1280):
        before = net.shapes[x][-1]
        if vertices > before:
            x = net.product(x, net.random((before, vertices)))
        for _ in range(2):
            mixed = net.product(x, net.random((vertices, vertices)))
            x = net.turned(net.linear(net.turned(mixed, 0, 2, 1), 64, "Relu"), 0, 2, 1)
    return net.linear(net.turned(x, 0, 2, 1), 3)


# Of each branch of HRViT-b1 (Gu et al. 2022, Table 1): channels, heads and expansion.
_BRANCHES = ((32, 1, 4), (64, 2, 4), (128, 4, 4), (256, 8, 4))
_BLOCKS = (((1,), 1), ((1, 1), 1), ((1, 1, 6), 3), ((1, 1, 6, 2), 1))  # a branch, and modules


def hrvit_b1() -> Builder:
    """HRViT-b1 (Gu et al. 2022): up to four branches, each half as wide as the one before, that
    attend within their rows and exchange what they found; 19 classes for each place."""
    net = Builder((1, 3, 256, 256))
    x = net.conv(net.conv(INPUT, 32, 3, 2, act="Relu"), 32, 3, 2, act="Relu")
    branches = [x]
    for blocks, modules in _BLOCKS:
        if len(blocks) > len(branches):
            channels = _BRANCHES[len(branches)][0]
            branches.append(net.conv(branches[-1], channels, 3, 2))
        for _ in range(modules):
            branches = [
                _attending(net, each, *_BRANCHES[level][1:], count)
                for level, (each, count) in enumerate(zip(branches, blocks, strict=True))
            ]
            branches = [_exchanged(net, branches, level) for level in range(len(branches))]
    height, width = net.shapes[x][2:]
    large = [net.resize(net.conv(each, 64, 1), height, width) for each in branches]
    net.outputs.append(net.conv(net.conv(net.join(*large), 256, 1, act="Relu"), 19, 1))
    return net


def _attending(net: Builder, x: str, heads: int, expand: int, count: int) -> str:
    """So many blocks: attention within rows, keys being values; a mixed convolution after it."""
    _, channels, height, width = net.shapes[x]
    for _ in range(count):
        query, value = (
            net.shaped(net.conv(x, channels, 1), heads, channels // heads, height, width)
            for _ in range(2)
        )
        keys = net.turned(value, 0, 2, 1, 3)
        values = net.turned(value, 0, 2, 3, 1)
        found = net.attended(net.turned(query, 0, 2, 3, 1), keys, values)
        found = net.shaped(net.turned(found, 0, 3, 1, 2), 1, channels, height, width)
        x = net.plus(x, net.conv(found, channels, 1))
        y = net.conv(x, expand * channels, 1, act="HardSwish")
        y = net.conv(y, expand * channels, 3, groups=expand * channels, act="HardSwish")
        x = net.plus(x, net.conv(y, channels, 1))
    return x


def _exchanged(net: Builder, branches: Sequence[str], level: int) -> str:
    """A branch, and what the others add to it."""
    x = branches[level]
    _, channels, height, width = net.shapes[x]
    for other, y in enumerate(branches):
        if other > level:
            x = net.plus(x, net.resize(net.conv(y, channels, 1), height, width))
        elif other < level:
            stride, own = 1 << (level - other), net.channels(y)
            slim = net.conv(y, own, 2 * stride - 1, stride, own)
            x = net.plus(x, net.conv(slim, channels, 1))
    return net.act(x, "Relu")
