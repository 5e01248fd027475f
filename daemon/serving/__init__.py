"""Serving: what each scenario serves, and one exchange from request to durable record."""
