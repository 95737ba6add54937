"""A run as its host and its user see it; what several sessions share."""
