// Package usage counts calls: per hour, tenant, principal, server and tool, with their outcomes,
// durations and sizes.
//
// The counts are a function of the call records (internal/calls/records). A process that is killed
// leaves nothing half counted, and nothing is counted twice. A call counts in the hour of its
// admission; if a later record changes the call, the counts follow. Calls never wait for counting.
// An hour has at most about 2,000 rows; further calls are counted in one row of their tenant,
// named [Other].
//
// The counts contain no more than the log: records that a killed front door had not stored are not
// counted. If the first record of a call was deleted (by age or for lack of space) before a later
// record is counted, the call remains counted as it was.
//
// # How it stays exact
//
// Each hour is one message of the stream callyard_usage. It holds the rows and the sequence of the
// log up to which they are complete; both are written together by compare-and-set. To update an hour,
// the records of the calls in newer messages are read and merged twice, up to the old sequence and up
// to the new one, and the difference is added. Repeating this from any message gives the same rows,
// so front doors need no lock: the one with the smallest id does the work (see [Options.Lead]), and
// two that do it at the same time only cause conflicts and retries. A cursor, in a separate message,
// stores the sequence up to which all hours are complete; it only saves reads.
//
// The package makes no decisions about calls, and does not know who may see which rows.
package usage
