"""The policies of papers are asked as those of apps are."""

from tests.schedulers.conftest import moment, queues

__all__ = ["moment", "queues"]
