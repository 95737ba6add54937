"""XRBench's networks that look at what comes in time: sound, speech, and actions."""

from __future__ import annotations

from heimdall.lab.standins.builder import INPUT, Builder

_TOKENS, _WIDTH, _HEADS, _LAYERS = 128, 512, 8, 24


def res8_narrow() -> Builder:
    """Tang and Lin 2018: a word in a second of sound, 40 coefficients each 10 ms; twelve words."""
    net = Builder((1, 1, 100, 40))
    x = net.conv(INPUT, 19, 3, act="Relu")
    shape = (1, 19, 25, 13)
    x = net.add("AveragePool", [x], shape, kernel_shape=[4, 3], strides=[4, 3])
    for _ in range(3):
        y = net.conv(net.conv(x, 19, 3, act="Relu"), 19, 3)
        x = net.plus(x, y, "Relu")
    net.classifier(x, 12)
    return net


def ed_tcn() -> Builder:
    """Lea et al. 2017: what is done in each of 128 moments, by two convolutions of 25 moments, and
    two back."""
    net = Builder((1, 128, 1, _TOKENS))
    x, length = INPUT, _TOKENS
    for channels in (96, 128):
        length //= 2
        x = net.conv(x, channels, (1, 25), act="Relu")
        pooled = {"kernel_shape": [1, 2], "strides": [1, 2]}
        x = net.add("MaxPool", [x], (1, channels, 1, length), **pooled)
    for channels in (96, 96):
        length *= 2
        x = net.conv(net.resize(x, 1, length), channels, (1, 25), act="Relu")
    net.outputs.append(net.conv(x, 17, 1))
    return net


def emformer_24l() -> Builder:
    """Shi et al. 2021: 24 layers of 512 on a segment of speech with what lies around it, 128 tokens
    of 40 ms with 80 bands each 10 ms."""
    net = Builder((1, _TOKENS, 320))
    x, each = net.linear(INPUT, _WIDTH), _WIDTH // _HEADS
    for _ in range(_LAYERS):
        y = net.normed(x)
        query, key, value = (
            net.shaped(net.linear(y, _WIDTH), 1, _TOKENS, _HEADS, each) for _ in range(3)
        )
        keys, values = net.turned(key, 0, 2, 3, 1), net.turned(value, 0, 2, 1, 3)
        found = net.attended(net.turned(query, 0, 2, 1, 3), keys, values)
        found = net.shaped(net.turned(found, 0, 2, 1, 3), 1, _TOKENS, _WIDTH)
        x = net.plus(x, net.linear(found, _WIDTH))
        x = net.plus(x, net.linear(net.linear(net.normed(x), 4 * _WIDTH, "Relu"), _WIDTH))
    net.outputs.append(net.linear(x, 129))
    return net
