"""Writes expressions.json.gz and conversions.json: what toolregistry-hub answers.

Usage: python3.11 golden.py PATH-OF-THE-PACKAGE-toolregistry_hub

The package may be unpacked only; calculator.py and unit_converter.py are loaded without
what the rest of it depends on. Run it where this file is.
"""

import ast
import gzip
import importlib.util
import json
import math
import random
import sys
import types
import warnings
from pathlib import Path

source, here = Path(sys.argv[1]), Path(__file__).parent

package = types.ModuleType("toolregistry_hub")
package.__path__ = [str(source)]
sys.modules["toolregistry_hub"] = package


def load(name):
    spec = importlib.util.spec_from_file_location(f"toolregistry_hub.{name}", source / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


utils = types.ModuleType("toolregistry_hub.utils")
sys.modules["toolregistry_hub.utils"] = utils
spec = importlib.util.spec_from_file_location("toolregistry_hub.utils.fn_namespace", source / "utils" / "fn_namespace.py")
fn = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fn)
utils.get_all_static_methods = fn.get_all_static_methods
utils.bind_literal = lambda f, *_: f
calculator = load("calculator")
Calculator = calculator.Calculator
units = load("unit_converter")

warnings.simplefilter("ignore")
rnd = random.Random(20261125)


class TooLarge(Exception):
    """The value is outside what the comparison covers."""


def check(v):
    if isinstance(v, complex):
        raise TooLarge
    if isinstance(v, int) and not isinstance(v, bool) and v.bit_length() > 100_000:
        raise TooLarge
    if isinstance(v, (list, tuple)):
        for one in v:
            check(one)


def evaluate(text):
    """The value, or None where the reference fails."""
    try:
        v = Calculator.evaluate(text)
    except ValueError:
        return None
    check(v)
    return v if isinstance(v, (bool, int, float, list, tuple)) else None


def show(v):
    if v is None:
        return None
    if isinstance(v, bool):
        return f"bool {v}"
    if isinstance(v, int):
        return f"int {v}" if v.bit_length() <= 2000 else f"hex {v:x}"
    if isinstance(v, float):
        return f"float {v!r}"
    return "list " + "; ".join(show(one) for one in v)


def number():
    pick = rnd.random()
    if pick < 0.45:
        return str(rnd.randint(0, 20))
    if pick < 0.55:
        return str(rnd.randint(0, 10**rnd.randint(1, 30)))
    if pick < 0.85:
        return repr(round(rnd.uniform(0, 50), rnd.randint(0, 4)))
    if pick < 0.9:
        return repr(rnd.uniform(0, 1) * 10 ** rnd.randint(-30, 30))
    return rnd.choice(["pi", "e", "tau", "0", "1", "True", "1_000", "0x1f", "1e3", ".5", "2."])


def small():
    return str(rnd.randint(-3, 30))


def numbers(depth):
    return "[" + ", ".join(expression(depth - 2) for _ in range(rnd.randint(1, 6))) + "]"


ONE = """abs sqrt cbrt ln exp sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh log2 log10 log1p
exp2 expm1 fabs floor ceil trunc degrees radians erf erfc gamma lgamma isfinite isinf isnan ulp int float bool
frexp modf log round""".split()
TWO = "add subtract multiply divide floor_divide mod pow log atan2 copysign fmod remainder hypot nextafter isclose".split()
LISTS = "min max sum average median mode standard_deviation fsum prod norm_euclidean".split()


def call(depth):
    pick = rnd.random()
    if pick < 0.4:
        return f"{rnd.choice(ONE)}({expression(depth - 1)})"
    if pick < 0.6:
        return f"{rnd.choice(TWO)}({expression(depth - 1)}, {expression(depth - 1)})"
    if pick < 0.78:
        return f"{rnd.choice(LISTS)}({numbers(depth)})"
    return rnd.choice(
        [
            lambda: f"factorial({small()})",
            lambda: f"gcd({small()}, {small()})",
            lambda: f"lcm({small()}, {small()})",
            lambda: f"comb({small()}, {small()})",
            lambda: f"perm({small()}, {small()})",
            lambda: f"perm({small()})",
            lambda: f"isqrt({small()})",
            lambda: f"round({expression(depth - 1)}, {rnd.randint(-3, 6)})",
            lambda: f"ldexp({expression(depth - 1)}, {small()})",
            lambda: f"dist([{number()}, {number()}], [{number()}, {number()}])",
            lambda: f"dist([{number()}, {number()}], [{number()}, {number()}], 'manhattan')",
            lambda: f"dist([{number()}], [{number()}], metric='manhattan')",
            lambda: f"hypot({number()}, {number()}, {number()})",
            lambda: f"simple_interest({number()}, {number()}, {number()})",
            lambda: f"compound_interest({number()}, {rnd.uniform(0, 0.2):.3f}, {rnd.randint(1, 30)}, {rnd.randint(1, 12)})",
            lambda: f"compound_interest({number()}, rate={rnd.uniform(0, 0.2):.3f}, time={rnd.randint(1, 9)})",
            lambda: f"log({expression(depth - 1)}, base={number()})",
            lambda: f"prod([{number()}, {number()}], start={number()})",
            lambda: f"isclose({number()}, {number()}, rel_tol=0.5)",
        ]
    )()


def expression(depth):
    if depth <= 0:
        return number()
    pick = rnd.random()
    if pick < 0.12:
        return number()
    if pick < 0.5:
        op = rnd.choice(["+", "-", "*", "/", "//", "%", "+", "-", "*"])
        return f"{expression(depth - 1)} {op} {expression(depth - 1)}"
    if pick < 0.58:
        return f"({expression(depth - 1)}) ** {rnd.choice([small(), number(), '-' + number()])}"
    if pick < 0.68:
        return f"({expression(depth - 1)})"
    if pick < 0.75:
        return f"{rnd.choice('-+')}{expression(depth - 1)}"
    if pick < 0.8:
        ops = [rnd.choice(["<", "<=", ">", ">=", "==", "!="]) for _ in range(rnd.randint(1, 2))]
        return "(" + expression(depth - 1) + "".join(f" {o} {expression(depth - 1)}" for o in ops) + ")"
    if pick < 0.83:
        return f"({expression(depth - 1)} {rnd.choice(['and', 'or'])} {expression(depth - 1)})"
    if pick < 0.84:
        return f"(not {expression(depth - 1)})"
    return call(depth)


def bounded(text):
    """Evaluates the parts and then the whole; a part that is too large raises TooLarge."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        part = ast.unparse(node) if isinstance(node, (ast.BinOp, ast.Call, ast.UnaryOp)) else None
        if part is not None:
            evaluate(part)
    return evaluate(text)


INEXACT = set(ONE + TWO + LISTS + ["simple_interest", "compound_interest", "dist", "hypot"])


class Nudge(ast.NodeTransformer):
    """Changes the last bit of every float that libraries may round differently."""

    def generic_visit(self, node):
        node = super().generic_visit(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) or isinstance(node, ast.Call) and node.func.id in INEXACT:
            return ast.Call(ast.Name("nudge", ast.Load()), [node], [])
        return node


def is_stable(text, v):
    """Whether the value does not hang on the last bit of a part."""
    namespace = {"int": int, "float": float, "bool": bool}
    for name in calculator._MATH_LIB_FUNCTIONS:
        namespace[name] = getattr(math, name)
    for name in calculator._ALLOWED_FUNCTIONS:
        namespace[name] = getattr(calculator.BaseCalculator, name)
    for by in (1 + 2**-52, 1 - 2**-52):
        namespace["nudge"] = lambda x: x * by if isinstance(x, float) else x
        tree = ast.fix_missing_locations(Nudge().visit(ast.parse(text.strip(), mode="eval")))
        try:
            w = eval(compile(tree, "", "eval"), {"__builtins__": {}}, namespace)
        except Exception:
            w = None
        if isinstance(v, float) and isinstance(w, float):
            if not (v == w or abs(v - w) <= 1e-13 * abs(v) or v != v and w != w):
                return False
        elif show(v) != show(w) and not isinstance(v, (list, tuple)):
            return False
    return True


def powers_are_small(text):
    # Inner powers come first: a huge one must not be computed as part of an outer one.
    tree = ast.parse(text, mode="eval")
    powers = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)]
    for node in reversed(powers):
        base, exponent = evaluate(ast.unparse(node.left)), evaluate(ast.unparse(node.right))
        if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > 100_000:
            return False
    return True


cases, seen = [], set()
by_hand = [
    "7 // -2", "-7 // 2", "7 % -2", "-7 % 2", "7.5 // -2", "-7.5 % 2", "-2 ** 2", "2 ** -1", "2 ** 3 ** 2", "0 ** 0", "0.0 ** -1",
    "1 / 3", "10 / 5", "4 ** 0.5", "(-8) ** (1 / 3)", "1 < 2 < 3", "1 < 3 < 2", "1 == 1.0", "2 ** 1000", "10 ** 40 / 10 ** 20",
    "2 ** 2000 / 2 ** 1999", "2 ** 2000 / 3", "10 ** 400 * 1.0", "10 ** 400 / 10 ** 399", "round(2.5)", "round(3.5)", "round(-2.5)",
    "round(2.675, 2)", "round(1234.5, -2)", "round(1250, -2)", "round(1350, -2)", "round(-1250, -2)", "round(50.0, -2)", "round(150.0, -2)",
    "round(1e300, 2)", "round(inf, 2)", "floor(-0.5)", "ceil(-0.5)", "trunc(-0.5)", "int(-3.9)", "floor(inf)", "sqrt(-1)", "sqrt(2 ** 2000)",
    "log(100)", "log(8, 2)", "log(2 ** 5000, 2)", "ln(2 ** 5000)", "log2(2 ** 5000)", "log10(10 ** 500)", "log(0)", "log(1, 1)", "ln(-1)",
    "factorial(20)", "factorial(5.0)", "factorial(-1)", "comb(5, 7)", "comb(50, 25)", "perm(5)", "perm(5, 2)", "gcd(0, 0)", "gcd(12, 18.0)",
    "lcm(4, 6)", "lcm(0, 2.5)", "max([])", "sum([])", "mode([1, 2, 2.0, 3, 3])", "mode([1, True, 1.0])", "median([1, 2])", "median([3, 1, 2])",
    "min([True, 2])", "average([1, 2])", "average([])", "standard_deviation([2, 4, 4, 4, 5, 5, 7, 9])", "max(1, 2)", "sum(1, 2)", "dist([0, 0], [3, 4])",
    "dist([1], [1, 2])", "hypot(3, 4)", "hypot()", "norm_euclidean([3, 4])", "gamma(5)", "gamma(0)", "gamma(-1)", "gamma(200)", "lgamma(0)",
    "exp(1000)", "exp(-1000)", "pow(0, -1)", "pow(-8, 1 / 3)", "pow(2, 2000)", "sin(inf)", "atan2(0.0, -1.0)", "modf(-2.5)", "modf(inf)",
    "frexp(8)", "frexp(0)", "ldexp(1, 2000)", "ldexp(1.0, -2000)", "ldexp(1, 2.0)", "fmod(-7, 3)", "fmod(1, 0)", "fmod(inf, 1)", "remainder(5, 3)",
    "ulp(1)", "ulp(0)", "ulp(1.7976931348623157e308)", "nextafter(1, 2)", "isclose(1, 1 + 1e-10)", "isclose(1, 2, rel_tol=-1)", "fsum([0.1] )",
    "fsum([1e100, 1, -1e100])", "prod([])", "prod([2, 3], start=4)", "1 and 0 or 5", "0 and 1 / 0", "1 or 1 / 0", "not 0", "not not 3", "3 and 4.5",
    "True + True", "-True", "+True", "True / 2", "abs(True)", "1 +", "(1", "1)", "[1, 2", "1 2", "foo(1)", "foo", "sqrt", "sqrt()", "sqrt(1, 2)",
    "01", "00", "1__0", "1_000", "0x", "0b12", "0o17", "1e", "1.e2", "1.5.2", "inf - inf", "inf // 1", "1 // inf", "-1 // inf", "-1 % inf", "nan == nan",
    "nan != nan", "max([nan, 1])", "max([1, nan])", "1 / 0", "1 // 0.0", "1 % 0", "0 ** -1", "1e308 * 10", "1e308 + 1e308", "2.0 ** 2000", "(-1) ** inf",
    "(-1) ** 10 ** 20", "1 ** 10 ** 20", "3 < nan", "2 ** 53 + 1 == 2.0 ** 53", "10 ** 400 > 1e308", "10 ** 400 > inf", "add(1)", "add(1, 2, 3)",
    "add(a=1, b=2)", "add(1, a=2)", "add(a=1, 2)", "log(x=100)", "log(100, 10, 10)", "round(1.5, 0.5)", "round(12345, -10)", "round(5, -1)", "round(15, -1)",
    "int('x')", "isqrt(17)", "isqrt(-1)", "isqrt(2.0)", "cbrt(-27)", "cbrt(0)", "simple_interest(1000, 0.05, 3)", "compound_interest(1000, 0.05, 10)",
    "compound_interest(1000, 0.05, 10, 12)", "compound_interest(1, 1, 2, 0)", "degrees(pi)", "radians(180)", "1 if 2 else 3 +", "", " 1 ", "bool([])", "bool([0])",
]
for text in by_hand:
    try:
        cases.append([text, show(evaluate(text))])
    except TooLarge:  # complex: not one of the results that the tool names
        cases.append([text, None])
    seen.add(text)
failed = 0
while len(cases) < 2200:
    text = expression(rnd.randint(1, 4))
    if text in seen or len(text) > 160:
        continue
    try:
        if not powers_are_small(text):
            continue
        v = bounded(text)
        if not is_stable(text, v):
            continue
    except (TooLarge, SyntaxError, RecursionError):
        continue
    if v is None:
        if failed > 400:
            continue
        failed += 1
    seen.add(text)
    cases.append([text, show(v)])
with open(here / "expressions.json.gz", "wb") as raw:
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as out:
        out.write(json.dumps(cases, separators=(",", ":")).encode())

conversions = []
for name in units.UnitConverter._all_conversions():
    for i in range(20):
        value = [0, 1, -1, 0.5, 100][i] if i < 5 else rnd.uniform(-1, 1) * 10 ** rnd.randint(-6, 9)
        kwargs = {"area": round(rnd.uniform(0.5, 9), 3)} if "lux" in name or "weber" in name and i % 2 else {}
        conversions.append([name, value, kwargs.get("area", 0), units.UnitConverter.convert(value, name, **kwargs)])
with open(here / "conversions.json", "w") as out:
    out.write(json.dumps(conversions, separators=(",", ":")).replace("],[", "],\n[") + "\n")
print(len(cases), "expressions,", sum(r is None for _, r in cases), "fail;", len(conversions), "conversions of", len({c[0] for c in conversions}))
