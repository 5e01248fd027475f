"""Settings: the configuration, the home folder, its lock and its token.

Owns: `Settings` and every way to give one, `Home`, `hold`, `resolve_token`, `recipe_for`.
Does not own: what the settings are for. Each room reads its own section.
To add a setting: a field in `model.py`; what can contradict another goes into `check.py`.
"""
