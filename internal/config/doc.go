// Package config reads what operators write: the configuration file of Callyard
// itself ([Load]) and the file that lists MCP servers ([LoadServers]).
//
// It owns the reading, not the settings: each part keeps its own Config struct,
// filled with its defaults, and hands a pointer to it in. Three layers are put on
// top of the defaults: the YAML file, CALLYARD_… environment variables and
// settings of the command line; a later one wins.
//
// # What it promises
//
//   - Every fault is reported at once, in [Faults], each with file, line and column
//     or the variable that it came from, and a sentence that says how to fix it.
//   - Nothing is guessed: unknown keys, keys given twice, values of the wrong type,
//     numbers without their unit and unknown CALLYARD_… variables are faults.
//   - A server entry that cannot be understood in full is a fault, so that a
//     misspelt riskLevel never lowers a risk. What other programs keep in the same
//     file is left alone, with a note where it stands inside a server entry.
//   - Values that may be secret are not repeated in faults, notes and logs, and
//     [Dump] writes [secret] in their place.
//
// # What it refuses
//
// It judges the form of a setting, not whether it can be honoured: whether a
// container engine is there, or an address can be listened on, is for the part
// that uses it. It does not watch files, and it writes none.
//
// # How settings are named
//
// A key is the yaml tag of a field, or its name in snake case where there is
// none; "-" leaves a field out and ",inline" lifts the fields of a struct one
// level up. The variable of a key is CALLYARD_ and its path in upper snake case:
// front_door.listen is CALLYARD_FRONT_DOOR_LISTEN. Lists are separated by commas
// there, maps and lists of structs written as JSON, and the same name with _FILE
// at its end names a file that holds the value. ${NAME} and ${NAME:-default} in
// texts of the file stand for environment variables; $${ stands for ${.
//
// A struct checks its own ranges in a method Validate() []Fault with paths that
// count from the struct; see [Faultf].
//
// It is one package because two files in three languages (YAML, JSON and variables), and
// the entries of four clients, are read by one decoder, so that a fault looks the same
// wherever it is.
package config
