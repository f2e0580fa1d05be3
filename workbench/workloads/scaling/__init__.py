"""Ways to change the load of a trace; each says what it did to rate, peak over mean and CV."""
