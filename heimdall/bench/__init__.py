"""Evaluation: the paper's scenarios, and the systems that are compared on them.

``scenario``  a workload: an app and what it changes, or DNNs that are simulated only
``systems``   what runs it: the coordinator with a policy, or an uncoordinated baseline
"""
