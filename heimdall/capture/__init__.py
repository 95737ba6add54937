"""Where frames come from: cameras, files and streams, read on a thread of their own."""

from heimdall.capture.kinds import SOURCES
from heimdall.capture.readers import Reader
from heimdall.capture.source import Frame, Source, open_source

__all__ = ["SOURCES", "Frame", "Reader", "Source", "open_source"]
