"""Checks conversations with the official checker of bfcl-eval.

Reads JSON lines {"id", "turns": [[step, ...], ...]}, where a step is a list of {name: arguments},
from standard input, and writes for each {"valid", "error_type"}. What surrounds the checker is that
of the official runner (eval_runner.py), whose module imports the clients of all model providers:
conversations with another number of turns are invalid, and steps without calls are left out.
"""

import json
import os
import sys

import bfcl_eval
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

DATA = os.path.join(list(bfcl_eval.__path__)[0], "data")
SETS = ["multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context"]


def lines(*path):
    with open(os.path.join(DATA, *path), encoding="utf-8") as file:
        return {entry["id"]: entry for entry in map(json.loads, file)}


entries, answers = {}, {}
for name in SETS:
    entries |= lines(f"BFCL_v4_{name}.json")
    answers |= lines("possible_answer", f"BFCL_v4_{name}.json")


def check(case):
    truth = answers[case["id"]]["ground_truth"]
    if len(case["turns"]) != len(truth):
        return {"valid": False, "error_type": "multi_turn:force_terminated"}
    turns = []
    for steps in case["turns"]:  # convert_to_function_call of model_handler/utils.py
        written = [[f"{name}({','.join(f'{k}={v!r}' for k, v in arguments.items())})" for call in step for name, arguments in call.items()] for step in steps]
        turns.append([step for step in written if step])
    category = case["id"].rsplit("_", 1)[0]
    return multi_turn_checker(turns, truth, entries[case["id"]], category, "model")


out, sys.stdout = sys.stdout, sys.stderr
before = set(vars(multi_turn_utils))
for line in sys.stdin:
    try:
        result = check(json.loads(line))
    except Exception as fault:  # the official runner would stop here
        result = {"valid": False, "error_type": f"exception {fault}"}
    for name in set(vars(multi_turn_utils)) - before:
        del vars(multi_turn_utils)[name]  # the objects of this conversation
    print(json.dumps({"valid": result["valid"], "error_type": result.get("error_type", "")}), file=out)
