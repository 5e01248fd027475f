"""The files that `reef init` writes."""

from reef_cli.exits import UsageError

AGENTS = ("chat",)

_CONFIG = """\
# Reef's configuration. Any value can be overridden: reef up --section.key VALUE

[reef]
port = 8900

# Where the models are. Without an upstream Reef takes the provider whose key is in the environment, a local
# server it finds, or the embedded model.
# [[upstream]]
# name = "main"
# base_url = "http://127.0.0.1:11434"
# model = "qwen3:8b"                    # what Reef itself asks for
# api_key_env = "OPENAI_API_KEY"        # the variable that holds the key
# api = ["chat"]                        # chat, messages, responses; left out: all

# Which scenario learns how; the first match wins.
[[scenario]]
match = "*"
recipe = "main"
"""

_RECIPE = """
[recipe.main]
use = "{recipe}"
adapter = "{agent}"
"""

_HARNESS_EVOLVE = """\
proposers = ["feedback", "demonstrations"]   # add "reflect" to let a model propose, too
batch_size = 1
max_score = 0.0                         # reports at or below it are lessons
tasks = "tasks.toml"                    # relative to this file
publish = "auto"                        # "review": a person decides on every candidate

[recipe.main.gate]
policy = "sequential"                   # publishes what is no better with probability alpha at most
alpha = 0.05
budget_pairs = 30
temperature = 0.0                       # of episodes; above 0 a task is repeated
"""

TASKS = """\
# What a candidate must be better at. `train` tasks are shown to proposers, `dev` tasks narrow candidates,
# `gate` tasks only decide: at least five of them, or a person has to. Replace these with your own.

[[task]]
id = "units"
prompt = "How long is a marathon? Answer with a number and a unit."
evaluator = "regex"
pattern = "42[.,]?\\\\d* ?(km|kilomet)"
split = "gate"

[[task]]
id = "exactly"
prompt = "Return exactly: reef is ready"
evaluator = "exact"
expected = "reef is ready"
split = "gate"

[[task]]
id = "sum"
prompt = "What is 17 + 25? Answer with the number only."
evaluator = "numeric"
expected = 42
split = "gate"

[[task]]
id = "city"
prompt = "Which city? Anna lives in Paris. Answer with one word."
evaluator = "contains"
expected = "Paris"
split = "gate"

[[task]]
id = "reverse"
prompt = "Write the word reef backwards. Answer with one word."
evaluator = "contains"
expected = "feer"
split = "gate"

[[task]]
id = "colour"
prompt = "Which colour? The boat is red. Answer with one word."
evaluator = "contains"
expected = "red"
split = "gate"

[[task]]
id = "exactly-train"
prompt = "Return exactly: the tide is low"
evaluator = "exact"
expected = "the tide is low"
split = "train"
"""


def config(recipe: str, agent: str) -> str:
    """A reef.toml that gives every scenario `recipe`.

    Raises:
        UsageError: an agent that has no adapter.
    """
    if agent not in AGENTS:
        raise UsageError(f"there is no adapter for `{agent}`", hint=f"one of {', '.join(AGENTS)}")
    text = _CONFIG + _RECIPE.format(recipe=recipe, agent=agent)
    return text + (_HARNESS_EVOLVE if recipe == "harness_evolve" else "")
