"""Runs on a virtual clock: the very coordinator and schedulers, on a device that is a model.

- ``device``         a phone (``heimdall/lab/devices``), its networks from the paper's figures
- ``measured``       a machine as ``heimdall measure`` has found it
- ``devices``        all of them, by name or file; ``tables`` checks what is in a file
- ``machine``        what every simulation runs on: processors and DNNs as numbers
- ``variations``     a machine with another figure in one place; ``watched`` what its DNNs see
- ``agenda``         virtual time: what happens next
- ``cores``          CPU cores with contention noise, and the worker threads on them
- ``turns``          a GPU without preemption whose driver takes turns between queues
- ``coordinated``    the runtime's loop in virtual time, around a real Coordinator
- ``uncoordinated``  the baselines: every DNN in a thread of its own; ``undrawn``, every model
- ``here``           this machine, measured, as a machine to simulate
- ``recorded``       the machine of a recorded run, and what that run showed
- ``simulate``       a scenario on a device under a system, to the summary of a run
- ``seeds``          many runs that differ by chance; ``parallel`` processes for them
- ``sweep``          all points of a file (``sweep_file``), kept as they end
"""
