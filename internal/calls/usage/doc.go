// Package usage counts who uses what: for each hour the calls of each tenant, principal,
// server and tool, with their outcomes, the time they took and the bytes they moved.
//
// It promises that the counts equal the execution log (internal/calls/records): what is
// counted is a function of the records, so that a process which is killed leaves nothing
// half counted and nothing is counted twice. A call counts in the hour in which it was
// admitted, as its records say it; where a later record says something else, the counts
// follow. It promises that calls never wait for it, and that an hour has at most about
// 2,000 rows: the others are counted in one row of their tenant, named [Other].
//
// It does not promise more than the log has: records that a killed front door had not
// stored are counted nowhere, and a call whose first record was deleted (by age or for
// want of space) before a later one came stays as it was counted.
//
// # How it stays exact
//
// Each hour is one message of the stream callyard_usage, with its rows and the sequence of
// the log up to which they are complete; it is written by compare-and-set, rows and
// sequence together. To bring an hour up to date, the records of the calls that newer
// messages name are read, merged once up to the old sequence and once up to the new one,
// and the difference is added. Whoever does this again, from whichever message, comes to
// the same rows, so front doors need no lock: the one with the smallest id does the work
// (see [Options.Lead]), and two that do it at once are in each other's way, no more. A
// cursor, in a message of its own, says up to where all hours are complete; it only saves
// reading.
//
// It refuses to decide anything about calls, and to know who may see which rows.
package usage
