"""ONNX files to graphs, the profiles of their ops, and partitions into chunks."""
