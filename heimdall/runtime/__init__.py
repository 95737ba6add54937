"""A run, from its opening to its figures. The rooms follow its life:

- `opening`    finds mistakes first, then opens devices, builds networks and places them: ``setup``
  reads top to bottom. ``building`` goes on beside the first frames, ``tuning`` after the last one
- `loop`       the life of a frame (``frame_loop``, a state machine), and what drives it: ``live``,
  or ``undrawn`` where no pictures are drawn; ``base`` is what both have
- `execution`  the coordinator's actions become work: ``executor``, jobs in flight (``runs``), and
  ``router``, which passes what workers report to the coordinator and results to sessions
- `telemetry`  what is counted, traced and kept
- `session`    Heimdall in another program; ``shared_gpu`` is what all sessions of a process share

``run`` is the way in for a process of its own, ``session`` for another program.
"""
