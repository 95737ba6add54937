"""An ONNX file as a graph of ops: read, simplified, sized and costed."""
