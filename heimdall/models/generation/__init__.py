"""Text that a language model writes, token by token, between frames.

A question's tokens go through a network of many rows piece by piece (``prompt``), then one by one
through a network of a single row (``step``), whose logits decide the next token. Both have the same
cache of keys and values (``heimdall.graph.decoder``). ``Writer`` knows which step is next; what
runs it is a DNN as any other.
"""
