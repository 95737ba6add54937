"""Networks that stand in for others: the right operators and sizes, and made-up weights, so what
they cost is real and what they say is nothing.

- ``builder``      an ONNX graph, layer by layer
- ``vision``       networks that look at pictures, ``classifiers`` those that name them,
  ``sequences`` those that listen, read or wait
- ``xrbench``, ``disb``, ``xsched``   tables of those that a benchmark has
- ``families``     all of them by name, and their files
"""
