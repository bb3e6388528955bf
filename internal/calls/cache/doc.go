// Package cache keeps results of calls that are safe to repeat, where the policy
// says so, and has calls that are the same and under way at the same time share
// one run.
//
// Two calls are the same when server, tool, definition of the tool and argument
// bytes are, and the principal too unless the policy shares results. A tool that
// its server defined again has no results yet. What is kept is the result as the
// tool gave it: never an error, a tool's own error, or a result over the limit.
//
// It promises that a caller which leaves takes nothing from those that wait for
// the same run, and that the run ends when all have left. Results are kept in
// Redis, for all front doors, or else in a bounded memory of this one. A Redis
// that does not answer is a miss, said once in the log.
//
// It refuses to judge: whether a call may run, is safe, and how long its result
// counts is for whoever asks.
package cache
