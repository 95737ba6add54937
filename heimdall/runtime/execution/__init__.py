"""What becomes of the coordinator's actions: jobs on processors."""
