"""What a scenario declares (``App``, ``DNN``), what it has of its DNNs (``Feed``), and what a user
may ask of a run (``RunOptions``)."""

from heimdall.app.app import App
from heimdall.app.dnn import DNN
from heimdall.app.feed import Feed
from heimdall.app.generate import Generate, Replies
from heimdall.app.loading import app_names, create, load_app, validate
from heimdall.app.options import RunOptions

__all__ = [
    "DNN",
    "App",
    "Feed",
    "Generate",
    "Replies",
    "RunOptions",
    "app_names",
    "create",
    "load_app",
    "validate",
]
