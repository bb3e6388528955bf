"""Checks answers with the official checker of bfcl-eval.

Reads JSON lines {"category", "functions", "answers", "calls": [{name: arguments}]} from standard
input, and writes for each {"valid", "error_type"}. The module model_config, which imports the
clients of all model providers, is replaced by one that leaves names as they are.
"""

import json
import sys
import types


class Unchanged(dict):
    def __missing__(self, name):
        return types.SimpleNamespace(underscore_to_dot=False)


model_config = types.ModuleType("bfcl_eval.constants.model_config")
model_config.MODEL_CONFIG_MAPPING = Unchanged()
sys.modules["bfcl_eval.constants.model_config"] = model_config

from bfcl_eval.constants.enums import Language  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # noqa: E402

for line in sys.stdin:
    case = json.loads(line)
    category = case["category"]
    language = Language.PYTHON
    if "javascript" in category:
        language = Language.JAVASCRIPT
    elif "java" in category:
        language = Language.JAVA
    try:
        result = ast_checker(case["functions"], case["calls"], case["answers"], language, category, "any")
    except Exception:  # the official runner would stop here
        result = {"valid": False, "error_type": "exception"}
    print(json.dumps({"valid": result["valid"], "error_type": result.get("error_type", "")}))
