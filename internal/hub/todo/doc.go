// Package todo keeps a task list for each session: the built-in server "todo".
//
// A session sees only its own list. The lists of all sessions stay within a maximum number of
// sessions and of bytes: the least recently used list is dropped, and any list that was not used
// for a day.
//
// Lists are kept in memory and end with the worker. Callers without a session are refused, because
// their lists could not be distinguished.
package todo
