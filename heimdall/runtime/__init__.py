"""A run: the loop of frames, what drives it, and what it opens, measures and shows.

Two ways in: ``run`` (a process of its own) and ``session`` (somebody else's program); ``opening``
opens either, on what ``setup`` has found. ``loop`` (the life of a frame, with its times from
``pacing``) is driven by ``live``; ``undrawn`` is a run without pictures, ``base`` what both have.
``station`` (what all sessions of a process share), ``switchboard`` (between workers, coordinator
and sessions), ``executor`` (actions become work; a chunk in ``parts``), ``deployment`` and
``processors`` (DNNs and engines, ready to run). ``controls``, ``script`` and ``callbacks`` are the
user and the app, ``outputs`` and ``telemetry`` what a run leaves behind and tells of itself, and
``tuning`` goes on in the ``background`` after it.
"""
