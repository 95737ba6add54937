"""The laboratory's commands (entry points ``heimdall.commands``)."""
