"""What a run counts, keeps and shows of itself."""
