"""Policies of papers that no app uses by default, one idea a file (entry points
``heimdall.schedulers``).
"""
