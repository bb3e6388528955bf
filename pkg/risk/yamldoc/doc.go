// Package yamldoc reads a YAML file into values that know their line and column, so
// that each fault found in them later can say where it is.
//
// It owns what the configuration and the policy have in common: the kinds of values,
// the bound of their nesting, and the words of faults about YAML itself. It promises
// not to panic and not to recurse beyond the bound, whatever the file holds.
//
// It refuses to know which keys exist and what a value means. It stands below pkg/risk
// because packages below pkg import nothing from internal, and a policy is read there.
package yamldoc
