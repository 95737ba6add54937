"""From a name to a run that can begin: what is found, built, placed and measured."""
