"""What a person reads: pure functions from the daemon's answers to text, for 80 columns, without colour."""
