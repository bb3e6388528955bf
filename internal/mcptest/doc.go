// Package mcptest provides scripted MCP servers for tests: a well-behaved one, and one for each way
// in which real servers misbehave.
//
// A server is a process that speaks MCP over stdin and stdout. It is the test binary itself:
// TestMain calls [MaybeServe] first, and [Command] returns the command that starts the binary as a
// server.
//
//	func TestMain(m *testing.M) {
//		mcptest.MaybeServe()
//		goleak.VerifyTestMain(m)
//	}
//
//	command, args, env := mcptest.Command(mcptest.MuteCalls)
//
// The JSON-RPC lines are written without an MCP library, because a library would not let a server
// violate the protocol. Every mode offers the same tools, see [Echo], and differs in the way it
// answers. No server runs forever: one that ignores its end exits after [Lifetime].
//
// The package provides no client and no HTTP server.
package mcptest

import "time"

// Modes of a scripted server, for [Command].
const (
	// Echo behaves well. Its tools, in the order of tools/list:
	//
	//	echo   {text}         answers the text
	//	add    {a, b}         answers the sum, as text and as structuredContent
	//	sleep  {ms}           answers late; sends four progress notifications on request; honors cancel
	//	big    {bytes}        answers that many bytes of text
	//	fail   {}             answers isError:true
	//	refuse {}             answers a JSON-RPC error: code [RefuseCode], with data
	//	crash  {}             ends the process with status [CrashStatus], no answer
	//	env    {}             answers its environment, as text lines and as structuredContent.environ
	//	effect {path, id, ms} appends id to the file, syncs, waits ms (optional), answers; see [ReadEffects].
	//	                      With "after" it answers only once a file exists at that path
	//	ask    {}             modern era: answers input_required; legacy: isError
	//
	// echo, add, sleep, big and env carry readOnlyHint, effect is explicitly destructive, and the
	// others have no annotations. There is one resource, [ResourceURI], and one prompt, "greet"
	// {name}.
	Echo = "echo"
	// Silent reads everything and never writes a byte.
	Silent = "silent"
	// MuteCalls completes the handshake and lists tools, but never answers tools/call.
	MuteCalls = "mute-calls"
	// Garbage writes lines that are not JSON around each good answer; with
	// [Flood] it never stops.
	Garbage = "garbage"
	// Huge answers each call with 100 MB of text; [Size] sets another size.
	Huge = "huge"
	// Exit exits at once with [ExitStatus] and writes [ExitText] to stderr.
	Exit = "exit"
	// Grandchild starts two processes that outlive it and hold its stdout: one in its process
	// group, and one in a separate session. See [PIDFile].
	Grandchild = "grandchild"
	// SlowStart reads nothing for 3 s, or for [StartDelay].
	SlowStart = "slow-start"
	// IgnoreDiscover is a legacy server that does not answer unknown methods.
	IgnoreDiscover = "ignore-discover"
	// IgnoreEOF keeps running when stdin ends and after SIGTERM or SIGINT, and reports each on
	// stderr ([StayedEOF], [StayedSignal]).
	IgnoreEOF = "ignore-eof"
	// WrongID answers calls with an id that no request had.
	WrongID = "wrong-id"
	// DuplicateAnswers answers each call twice, the second time with the text
	// [SecondAnswer].
	DuplicateAnswers = "duplicate-answers"
	// Deep answers calls with structuredContent nested 100,000 deep, or [Size].
	Deep = "deep"
	// SchemaChange makes the tool echo stricter after the first call: its schema then also requires
	// a "reason". A list_changed notification is sent.
	SchemaChange = "schema-change"
	// Versions has one tool, pay, whose description is the text of the file "version" in [Folder].
	// When the file changes, the server sends a list_changed notification. The tool changes to the
	// new version when tools/list is answered with it. Each call adds a line with the version that
	// received it to the file "runs".
	Versions = "versions"
	// UnknownContent answers calls with [UnknownContentResult] and lists
	// [OddTool] as its last tool.
	UnknownContent = "unknown-content"
	// HalfLine writes the first half of the answer to a call and nothing after it.
	HalfLine = "half-line"

	// sleeper is the process that Grandchild leaves running.
	sleeper = "sleeper"
)

// Outputs and status codes of the modes, for comparisons in tests.
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

	// Lifetime is the maximum life of processes that ignore their end.
	Lifetime = 2 * time.Minute
)

const (
	defaultHuge  = 100 << 20
	defaultDeep  = 100_000
	defaultDelay = 3 * time.Second
)
