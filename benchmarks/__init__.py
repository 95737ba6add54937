"""Programs that write pages of the laboratory. Heimdall first: onnxruntime reports nothing then."""

import heimdall  # noqa: F401
