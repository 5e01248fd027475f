"""What a person reads: pure functions from the daemon's answers to text, without colour."""
