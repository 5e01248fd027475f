"""Evaluation: tasks, evaluators, episodes and the gate that decides on a candidate."""
