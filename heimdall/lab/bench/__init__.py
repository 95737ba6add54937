"""Evaluation: the paper's scenarios, and the systems that are compared on them.

- ``scenario``  a workload: an app and what it changes, or DNNs that are simulated only; requests
  for models, by themselves or beside an app. ``settings``: the tables of its file
- ``systems``   what runs it: the coordinator with a policy, or an uncoordinated baseline
- ``workload``  a scenario as an App that runs; ``standin`` networks for its load
- ``model_threads``  models without a coordinator; ``renderer`` frames beside requests; ``score``
- ``loads``     input sizes at which networks take as long alone as a scenario asks for
- ``uncoordinated``  the baselines live, by ``threads`` and ``inference``
- ``live``      one system; ``runner`` several, each in a process of its own (``apart``)
- ``statistics``  several runs together: means with intervals
- ``judge``     what a machine is good for, by ``in_turns``, ``around`` and ``observed``
- ``accuracy``  what is on screen against what is there; ``footage`` for it
"""
