package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Environment variables that turn a process into a scripted server.
const (
	EnvMode    = "CALLYARD_MCPTEST"
	EnvOptions = "CALLYARD_MCPTEST_OPTIONS"
)

// Option changes the behaviour of a mode. The modes document which options they use.
type Option func(*options)

type options struct {
	Era     era           `json:"era,omitempty"`
	Flood   bool          `json:"flood,omitempty"`
	Size    int           `json:"size,omitempty"`
	Delay   time.Duration `json:"delay,omitempty"`
	PIDFile string        `json:"pid_file,omitempty"`
	Folder  string        `json:"folder,omitempty"`
}

// era selects the revisions of MCP that a server speaks.
type era string

const (
	legacyEra era = "" // initialize; server/discover is an unknown method
	modernEra era = "modern"
	bothEras  era = "both"
)

// Modern makes the server speak revision 2026-07-28 only. Without it, a server speaks 2025-11-25 and
// older.
func Modern() Option { return func(o *options) { o.Era = modernEra } }

// BothEras makes the server answer each request in the era of that request.
func BothEras() Option { return func(o *options) { o.Era = bothEras } }

// Flood makes [Garbage] write endlessly.
func Flood() Option { return func(o *options) { o.Flood = true } }

// Size is the number of bytes of [Huge] or the depth of [Deep].
func Size(n int) Option { return func(o *options) { o.Size = n } }

// StartDelay is the time that any mode waits before it does anything.
func StartDelay(d time.Duration) Option { return func(o *options) { o.Delay = d } }

// PIDFile is the file to which [Grandchild] writes the pids; read it with [ReadPIDs]. The file is
// complete before the server reads its first line.
func PIDFile(path string) Option { return func(o *options) { o.PIDFile = path } }

// Folder is the folder in which [Versions] reads its version and writes its runs.
func Folder(path string) Option { return func(o *options) { o.Folder = path } }

// Command returns the command, arguments and additional environment variables that start this
// executable as a scripted server. It panics if the path of the executable is unknown, which no
// test can fix.
func Command(mode string, opts ...Option) (command string, args []string, env map[string]string) {
	executable, err := os.Executable()
	if err != nil {
		panic("mcptest: finding this executable: " + err.Error())
	}
	return executable, nil, Env(mode, opts...)
}

// Env returns the variables that turn a program which calls [Main] or [MaybeServe] into a scripted
// server.
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
		// A binary built with -race lingers for a second at its exit, which would look like a server
		// that exits slowly.
		"GORACE": "atexit_sleep_ms=0",
	}
}

// MaybeServe returns immediately in a process that was not started by [Command]. Otherwise it runs
// the server and exits. Call it first in TestMain.
func MaybeServe() {
	if os.Getenv(EnvMode) != "" {
		Main()
	}
}

// Main runs the mode named by the environment or, failing that, by the first argument, and exits the
// process: with status 0 when stdin ends, and 2 if the mode or the options are unknown.
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
