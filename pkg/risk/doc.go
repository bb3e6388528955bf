// Package risk judges calls: tool, arguments, principal and policy in, an
// [Assessment] out.
//
// It owns the policy file: how it is read ([Parse]), what a rule means
// ([Policy.Assess]), what is doubtful about it ([Policy.Check]), and how a new
// version replaces the old one ([Holder]). One function, [Assess], decides at the
// front door and again in the worker, whatever path a call takes.
//
// # What it promises
//
//   - A policy is judged as a whole: every fault is reported at once, in
//     [Faults], with file, line and column.
//   - Doubt never lowers a risk. A condition that cannot be decided counts as if
//     it held where that is stricter, and the call is held at least.
//   - Lookalikes of a name do not slip past a rule that raises the risk: a tool
//     "Delete" is caught by a rule against "delete", and so is one with a space at
//     its end or a letter of another alphabet.
//   - No reason and no fault repeats the value of an argument.
//   - Assess is free of side effects, safe for concurrent use, and does not panic.
//
// # What it refuses
//
// It does not know how an approval is asked for or a container is made, and keeps
// no state between calls. It judges calls of tools; other MCP methods have no
// hints and no arguments that a rule could judge.
//
// It is one package because the file, the rules, the conditions and the check of a policy
// share one form of a rule, which nothing outside can make or change.
package risk
