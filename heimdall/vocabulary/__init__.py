"""The words that everything is said in: events and actions, plans, names. Values only."""
