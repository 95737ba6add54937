"""What only the bundled apps show: documents, pages, notes."""
