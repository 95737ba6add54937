"""What a scenario declares (``App``, ``DNN``), and what a user may ask of a run."""

from heimdall.app.app import App
from heimdall.app.dnn import DNN
from heimdall.app.loading import app_names, create, load_app, validate
from heimdall.app.options import RunOptions

__all__ = ["DNN", "App", "RunOptions", "app_names", "create", "load_app", "validate"]
