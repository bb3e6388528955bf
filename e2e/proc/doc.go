// Package proc builds the programs of a test, starts them, asks them over HTTP and ends
// them with it.
//
// It promises that every process that a test starts ends with that test, also when
// the test is killed (where the system can be asked for that), that what a process
// said is shown when its test fails, and that nothing waits for longer than its
// limit. Limits are deadlines and not expectations: two cores are shared with
// whatever else runs. It refuses to look inside a process: it reads what one prints.
//
// It is for tests alone.
package proc
