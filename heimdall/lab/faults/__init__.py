"""Faults on purpose: what a live run does when something goes wrong, measured from outside.

``table`` lists the faults, ``trial`` runs an app with one of them in a process of its own, and
``judge`` says from the times of frames and results whether that was borne.
"""
