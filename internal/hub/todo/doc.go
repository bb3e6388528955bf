// Package todo keeps a list of tasks for each session: the built-in server "todo".
//
// It promises that a session sees its own list only, and that the lists of all sessions
// stay within a number of sessions and of bytes: the list that was not used for the
// longest time is dropped, and one that was not used for a day.
//
// It keeps lists in memory: they end with the worker. It refuses callers without a session,
// because two of them could not be told apart.
package todo
