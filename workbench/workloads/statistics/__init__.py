"""What a trace looks like in numbers: lengths, arrivals, prefixes."""
