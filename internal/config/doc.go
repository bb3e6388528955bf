// Package config reads the files that operators write: the configuration file of Callyard
// itself ([Load]) and the file that lists MCP servers ([LoadServers]).
//
// It reads settings but does not define them: each component has its own Config struct, filled
// with defaults, and passes a pointer to it. Three layers override the defaults: the YAML file,
// CALLYARD_… environment variables, and command-line flags. A later layer wins.
//
// # Guarantees
//
//   - All faults are reported together, in [Faults]. Each has its file, line and column, or its
//     variable, and a sentence that says how to fix it.
//   - Nothing is guessed: unknown keys, duplicate keys, values of the wrong type, numbers
//     without a unit and unknown CALLYARD_… variables are faults.
//   - A server entry that is not fully understood is a fault, so a misspelt riskLevel never
//     lowers a risk. Keys of other programs in the same file are ignored; inside a server entry
//     they get a note.
//   - Values that may be secret never appear in faults, notes and logs, and [Dump] writes
//     [secret] in their place.
//
// # Limits
//
// The package checks the form of a setting, not whether it can take effect. The component that
// uses a setting checks, for example, whether a container engine answers or an address is free.
// The package does not watch files and writes none.
//
// # Names of settings
//
// A key is the yaml tag of a field, or its name in snake case if it has no tag. The tag "-"
// omits a field, and ",inline" lifts the fields of a struct one level up. The variable of a key
// is CALLYARD_ and its path in upper snake case: front_door.listen is
// CALLYARD_FRONT_DOOR_LISTEN. In a variable, a list is separated by commas, and maps and lists
// of structs are JSON. The same name with the suffix _FILE names a file that holds the value.
// In the text values of a file, ${NAME} and ${NAME:-default} are replaced by environment
// variables; $${ is a literal ${.
//
// A struct checks its own ranges in a method Validate() []Fault. Its paths are relative to the
// struct; see [Faultf].
//
// It is one package because two files in three languages (YAML, JSON and variables), and
// the entries of four clients, share one decoder, so that a fault looks the same everywhere.
package config
