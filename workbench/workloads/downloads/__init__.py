"""Real traces from their publishers: checked, resumed, never overwritten, never fetched unasked."""
