// Package yamldoc parses a YAML file into values with their line and column, so that faults
// found later can report their position.
//
// It contains the part that the configuration and the policy share: the kinds of values, the
// limit of their nesting, and the messages for faults of YAML itself. For any input, it does
// not panic and does not recurse beyond the limit.
//
// It does not know the valid keys or the meaning of a value. It is below pkg/risk, which
// parses policies, because packages below pkg import nothing from internal.
package yamldoc
