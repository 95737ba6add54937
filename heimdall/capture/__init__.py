"""Where frames come from: cameras, files and streams, read on a thread of their own."""

from heimdall.capture.source import Frame, Source, open_source

__all__ = ["Frame", "Source", "open_source"]
