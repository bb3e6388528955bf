package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Environment variables that make a process a scripted server.
const (
	EnvMode    = "CALLYARD_MCPTEST"
	EnvOptions = "CALLYARD_MCPTEST_OPTIONS"
)

// Option changes how a mode plays; see the modes for who heeds which.
type Option func(*options)

type options struct {
	Era     era           `json:"era,omitempty"`
	Flood   bool          `json:"flood,omitempty"`
	Size    int           `json:"size,omitempty"`
	Delay   time.Duration `json:"delay,omitempty"`
	PIDFile string        `json:"pid_file,omitempty"`
	Folder  string        `json:"folder,omitempty"`
}

// era is which revisions of MCP a server speaks.
type era string

const (
	legacyEra era = "" // initialize; server/discover is an unknown method
	modernEra era = "modern"
	bothEras  era = "both"
)

// Modern makes the server speak revision 2026-07-28 only. Without it a server
// speaks 2025-11-25 and older.
func Modern() Option { return func(o *options) { o.Era = modernEra } }

// BothEras makes the server answer each request in the era it was sent in.
func BothEras() Option { return func(o *options) { o.Era = bothEras } }

// Flood makes [Garbage] write without end.
func Flood() Option { return func(o *options) { o.Flood = true } }

// Size is the bytes of [Huge] or the depth of [Deep].
func Size(n int) Option { return func(o *options) { o.Size = n } }

// StartDelay is how long any mode waits before it does anything.
func StartDelay(d time.Duration) Option { return func(o *options) { o.Delay = d } }

// PIDFile is where [Grandchild] writes the pids; read it with [ReadPIDs]. The
// file is whole before the server reads its first line.
func PIDFile(path string) Option { return func(o *options) { o.PIDFile = path } }

// Folder is where [Versions] reads its version and writes its runs.
func Folder(path string) Option { return func(o *options) { o.Folder = path } }

// Command returns how to start this executable as a scripted server: the
// command, its arguments, and the variables to set besides those that the
// caller wants the server to have. It panics when the executable is unknown,
// which no test can fix.
func Command(mode string, opts ...Option) (command string, args []string, env map[string]string) {
	executable, err := os.Executable()
	if err != nil {
		panic("mcptest: finding this executable: " + err.Error())
	}
	return executable, nil, Env(mode, opts...)
}

// Env returns the variables that make a program which calls [Main] or
// [MaybeServe] a scripted server.
func Env(mode string, opts ...Option) map[string]string {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		panic("mcptest: encoding options: " + err.Error()) // plain fields always encode
	}
	return map[string]string{
		EnvMode:    mode,
		EnvOptions: string(encoded),
		// A binary built with -race lingers for a second at its exit, which looks
		// like a server that is slow to leave.
		"GORACE": "atexit_sleep_ms=0",
	}
}

// MaybeServe returns at once in a process that was not started by [Command].
// Otherwise it plays the server and ends the process. Call it first in
// TestMain.
func MaybeServe() {
	if os.Getenv(EnvMode) != "" {
		Main()
	}
}

// Main plays the mode that the environment or, without one, the first argument
// names, and ends the process: with status 0 when stdin ended, 2 when the mode
// or the options are unknown.
func Main() {
	mode := os.Getenv(EnvMode)
	if mode == "" && len(os.Args) > 1 {
		mode = os.Args[1]
	}
	var o options
	if encoded := os.Getenv(EnvOptions); encoded != "" {
		if err := json.Unmarshal([]byte(encoded), &o); err != nil {
			fmt.Fprintf(os.Stderr, "mcptest: reading %s: %v\n", EnvOptions, err)
			os.Exit(2)
		}
	}
	if mode == sleeper {
		time.Sleep(Lifetime)
		os.Exit(0)
	}
	act, ok := scriptOf(mode, o)
	if !ok {
		fmt.Fprintf(os.Stderr, "mcptest: no mode %q; the modes are the constants of this package\n", mode)
		os.Exit(2)
	}
	newServer(mode, o, act, os.Stdout).serve(os.Stdin)
	os.Exit(0)
}
