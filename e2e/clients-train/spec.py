"""Plays episodes of the environment "notes" with TRL's OpenRewardSpec, as its trainer would.

Usage: spec.py URL COUNT. Builds the data set, the tools and the reward function that
GRPOTrainer takes, and plays COUNT episodes with a fixed policy in place of a model. Prints the
rewards as a JSON list; null for an episode without a valid result.
"""

import inspect
import json
import re
import sys

from trl.experimental.openreward import OpenRewardSpec

url, count = sys.argv[1], int(sys.argv[2])

spec = OpenRewardSpec(url, env_name="notes", split="train")
rows = spec.train_dataset
assert rows.num_rows == 4 and rows["task_index"][:] == [0, 1, 2, 3], rows
assert rows["prompt"][0] == [{"role": "user", "content": ""}], rows[0]
assert rows["question"][2] == "What is 40 + 2?" and "expected" not in rows.column_names, rows.column_names

make = spec.environment_factory
# The trainer takes the public methods as tools, and describes them by their signatures.
tools = {n: m for n, m in inspect.getmembers(make(), inspect.ismethod) if not n.startswith("_") and n != "reset"}
assert {"evaluate", "update", "list", "finish"} <= set(tools), tools
assert inspect.signature(tools["evaluate"]).parameters["expression"].annotation is str, tools
try:
    from transformers.utils import get_json_schema

    described = get_json_schema(tools["evaluate"])["function"]
    assert described["parameters"]["required"] == ["expression"], described
except ImportError:
    pass

environments = []
for i in range(count):
    env = make()
    prompt = env.reset(**rows[i % len(rows)])
    expression = re.search(r"What is (.+)\?", prompt).group(1)
    if i % 2:
        env.update(todos=[f"[{i}] wait (planned)"])
    else:
        env.evaluate(expression=expression)
    assert env.reward is None and not env.finished, vars(env)
    env.finish(answer=expression)
    assert env.finished, vars(env)
    environments.append(env)
print(json.dumps(spec.reward_funcs(environments=environments)))
for env in environments:
    env._close()
