"""Networks that stand in for others: the right operators and sizes, and made-up weights, so what
they cost is real and what they say is nothing.

- ``builder``   an ONNX graph, layer by layer
- ``vision``    XRBench's networks that look at pictures, ``sequences`` those that listen or wait
- ``xrbench``   the table of them, and their files
"""
