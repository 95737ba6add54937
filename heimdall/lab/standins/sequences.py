"""Networks that look at what comes in time: sound, speech, actions, words."""

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
    x = net.linear(INPUT, _WIDTH)
    for _ in range(_LAYERS):
        x = net.plus(x, net.attention(net.normed(x), _HEADS))
        x = net.plus(x, net.linear(net.linear(net.normed(x), 4 * _WIDTH, "Relu"), _WIDTH))
    net.outputs.append(net.linear(x, 129))
    return net


def distilbert(tokens: int) -> Builder:
    """Sanh et al. 2019: 6 layers of 768 with 12 heads. What it is given are words' vectors: to look
    them up is left out."""
    net, width = Builder((1, tokens, 768)), 768
    x = net.normed(INPUT)
    for _ in range(6):
        x = net.normed(net.plus(x, net.attention(x, 12)))
        x = net.normed(net.plus(x, net.linear(net.linear(x, 4 * width, "Gelu"), width)))
    net.outputs.append(x)
    return net


def whisper_tiny() -> Builder:
    """The encoder of Whisper tiny (Radford et al. 2023): two convolutions on 30 s of sound, 80
    bands each 10 ms, then 4 layers of 384 with 6 heads on 1500 positions."""
    net, width, positions = Builder((1, 80, 1, 3000)), 384, 1500
    x = net.conv(net.conv(INPUT, width, (1, 3), act="Gelu"), width, (1, 3), 2, act="Gelu")
    x = net.turned(net.shaped(x, 1, width, positions), 0, 2, 1)
    x = net.plus(x, net.random((1, positions, width), 0.1))
    for _ in range(4):
        x = net.plus(x, net.attention(net.normed(x), 6))
        x = net.plus(x, net.linear(net.linear(net.normed(x), 4 * width, "Gelu"), width))
    net.outputs.append(net.normed(x))
    return net
