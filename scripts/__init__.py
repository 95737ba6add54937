"""Programs that make assets. Heimdall first: onnxruntime does not report home then."""

import heimdall  # noqa: F401
