// Package proc builds the programs of a test, starts them, sends them HTTP requests and ends
// them with the test.
//
// It promises that every process that a test starts ends with that test, also when
// the test is killed (if the system supports that), that the output of a process
// is shown when its test fails, and that no wait exceeds its
// limit. Limits are deadlines and not expectations, because the machine is shared with
// other programs. It refuses to look inside a process: it reads only the output.
//
// It is only for tests.
package proc
