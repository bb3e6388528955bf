// Package datetime tells the time and converts it between time zones: the built-in server
// "datetime".
//
// A time zone is a name of the IANA database, such as America/New_York, or an offset, such
// as UTC+5:30. Zone data of the machine is used where there is some, else what is
// embedded in the program.
//
// It promises that a wall-clock time that a zone skips or has twice is read with the
// offset before the change, as Python's zoneinfo does. It refuses the zone of the machine
// ("Local"): callers cannot know it.
package datetime
