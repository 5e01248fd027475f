"""What a person reads: pure functions from the daemon's answers to text, for the columns of the terminal, without colour."""
