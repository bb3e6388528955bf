// Package datetime returns the time and converts it between time zones: the built-in server
// "datetime".
//
// A time zone is a name of the IANA database, such as America/New_York, or an offset, such as
// UTC+5:30. Zone data of the machine is used if it exists, otherwise the data embedded in the
// program.
//
// A wall-clock time that a zone skips or repeats is interpreted with the offset before the change,
// as in Python's zoneinfo. The zone of the machine ("Local") is refused, because callers cannot
// know it.
package datetime
