// Package risk assesses calls. From a tool, arguments, a principal and a policy it makes an
// [Assessment].
//
// It owns the policy file: parsing ([Parse]), the meaning of rules ([Policy.Assess]), checks
// for likely mistakes ([Policy.Check]), and replacing the effective version ([Holder]). The
// front door and the worker both use the function [Assess], whatever path a call takes.
//
// # Guarantees
//
//   - Parsing reports every fault at once, in [Faults], with file, line and column.
//   - Doubt never lowers a risk. If a condition cannot be evaluated, the rule applies
//     if that is stricter, and the call is at least held.
//   - Lookalike names do not bypass a rule that raises the risk. A rule against "delete"
//     also catches a tool named "Delete", one with a trailing space, and one with a letter
//     of another alphabet.
//   - No reason and no fault contains the value of an argument.
//   - Assess has no side effects, is safe for concurrent use, and does not panic.
//
// # Out of scope
//
// It does not request approvals or create containers, and it keeps no state between calls.
// It assesses tool calls. Other MCP methods have no hints and no arguments that a rule could
// use.
//
// It is one package because the file, the rules, the conditions and the check of a policy
// share one form of a rule, which nothing outside can make or change.
package risk
