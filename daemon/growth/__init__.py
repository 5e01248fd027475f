"""Growth: takes a batch through a step, from proposal to decision; resumes after a crash."""
