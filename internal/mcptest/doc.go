// Package mcptest holds scripted MCP servers for tests: one that behaves, and
// one for each way in which real servers misbehave.
//
// A server is a process that speaks MCP over stdin and stdout. It is the test
// binary itself, started again: TestMain calls [MaybeServe] first, and
// [Command] says how to start the binary as a server.
//
//	func TestMain(m *testing.M) {
//		mcptest.MaybeServe()
//		goleak.VerifyTestMain(m)
//	}
//
//	command, args, env := mcptest.Command(mcptest.MuteCalls)
//
// The JSON-RPC lines are written by hand, because a server made with an MCP
// library cannot lie. Every mode offers the same tools, see [Echo]; what differs
// is how the answers come. No mode stays behind for ever: a server that is told
// to ignore its end leaves by itself after [Lifetime].
//
// The package refuses to be a client, and to speak HTTP.
package mcptest

import "time"

// Modes of a scripted server: what [Command] takes.
const (
	// Echo behaves well. Its tools, in the order of tools/list:
	//
	//	echo   {text}         answers the text
	//	add    {a, b}         answers the sum, as text and as structuredContent
	//	sleep  {ms}           answers late; four progress notifications when asked; honors cancel
	//	big    {bytes}        answers that many bytes of text
	//	fail   {}             answers isError:true
	//	refuse {}             answers a JSON-RPC error: code [RefuseCode], with data
	//	crash  {}             ends the process with status [CrashStatus], no answer
	//	env    {}             answers its environment, as text lines and as structuredContent.environ
	//	effect {path, id, ms} appends id to the file, syncs, waits ms (optional), answers; see [ReadEffects].
	//	                      With "after" it answers only once there is a file at that path
	//	ask    {}             modern era: answers input_required; legacy: isError
	//
	// echo, add, sleep, big and env carry readOnlyHint, effect is explicitly
	// destructive, the others carry no annotations. There is one resource,
	// [ResourceURI], and one prompt, "greet" {name}.
	Echo = "echo"
	// Silent reads everything and never writes a byte.
	Silent = "silent"
	// MuteCalls shakes hands and lists, and never answers tools/call.
	MuteCalls = "mute-calls"
	// Garbage writes lines that are not JSON around each good answer; with
	// [Flood] it never stops.
	Garbage = "garbage"
	// Huge answers each call with 100 MB of text; [Size] sets another size.
	Huge = "huge"
	// Exit leaves at once with [ExitStatus] and [ExitText] on stderr.
	Exit = "exit"
	// Grandchild starts two processes that outlive it and hold its stdout: one in
	// its own process group, one in a session of its own. See [PIDFile].
	Grandchild = "grandchild"
	// SlowStart reads nothing for a while: 3 s, or what [StartDelay] says.
	SlowStart = "slow-start"
	// IgnoreDiscover is a legacy server that does not answer unknown methods.
	IgnoreDiscover = "ignore-discover"
	// IgnoreEOF stays when stdin ends and when SIGTERM or SIGINT comes, and says
	// so on stderr ([StayedEOF], [StayedSignal]).
	IgnoreEOF = "ignore-eof"
	// WrongID answers calls under an id that nobody asked with.
	WrongID = "wrong-id"
	// DuplicateAnswers answers each call twice, the second time with the text
	// [SecondAnswer].
	DuplicateAnswers = "duplicate-answers"
	// Deep answers calls with structuredContent nested 100,000 deep, or [Size].
	Deep = "deep"
	// SchemaChange asks more of the tool echo after the first call: its schema
	// then requires a "reason" as well. A list_changed notification is sent.
	SchemaChange = "schema-change"
	// Versions has one tool, pay, whose description is the text of the file "version" in
	// [Folder]. When the file changes, a list_changed notification is sent, and the tool is
	// the new version once tools/list was answered with it. Each call adds a line, the
	// version that received it, to the file "runs".
	Versions = "versions"
	// UnknownContent answers calls with [UnknownContentResult] and lists
	// [OddTool] as its last tool.
	UnknownContent = "unknown-content"
	// HalfLine writes the first half of the answer to a call, and then nothing.
	HalfLine = "half-line"

	// sleeper is the process that Grandchild leaves behind.
	sleeper = "sleeper"
)

// What the modes say and do, for tests to compare with.
const (
	CrashStatus  = 3
	ExitStatus   = 1
	ExitText     = "cannot reach the database, giving up"
	RefuseCode   = 4242
	StayedEOF    = "stdin ended, staying"
	StayedSignal = "signal came, staying"
	SecondAnswer = "the second answer"
	ResourceURI  = "mcptest://greeting"
	FailText     = "the tool failed as told"

	// Lifetime bounds the processes that ignore their end.
	Lifetime = 2 * time.Minute
)

const (
	defaultHuge  = 100 << 20
	defaultDeep  = 100_000
	defaultDelay = 3 * time.Second
)
