package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/callyard/callyard/pkg/schema"
)

// TypeWebSocket is the type of a server that the worker dials by WebSocket.
const TypeWebSocket = "websocket"

// Spec describes how to reach one server.
type Spec struct {
	ID   schema.ServerID // server id, for logs and messages
	Type string          // "stdio", "http" (streamable HTTP), "sse" (legacy) or [TypeWebSocket]; others are only names

	// For a stdio server. Command is a path or a name that is looked up in PATH (of Env if it sets
	// PATH, otherwise of the worker). A relative path is relative to Dir. Env is added to the few
	// variables of every child. Dir is the working directory; if empty, it is that of the worker.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string

	// Files become descriptors 3 and up of the child. The caller must close them. User, if not 0, is
	// the user and group id of the child, with no other groups.
	Files []*os.File
	User  uint32

	// For an http, sse or websocket server.
	URL     string
	URLKey  string // the setting that holds URL, for messages; "" means url
	Headers map[string]string
	Auth    Authorizer // adds the credential of each request; if nil, only Headers do
}

// Environment variables with a special meaning in this package.
const (
	reaperVariable = "CALLYARD_REAPER" // "1" makes a process a reaper; see IsReaper
	cookieVariable = "CALLYARD_COOKIE" // marks a child and its descendants
)

// passedOn are the worker's variables that a child also gets: programs need them to find files and
// to choose a language.
var passedOn = [...]string{"PATH", "HOME", "TMPDIR", "LANG", "TZ", "USER"}

// defaultPath is used if neither the spec nor the worker sets PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// environment returns the whole environment of a child. The cookie comes first, so that a search finds
// it early.
func environment(spec Spec, cookie string) []string {
	env := make([]string, 0, 1+len(passedOn)+len(spec.Env))
	env = append(env, cookieVariable+"="+cookie)
	for _, name := range passedOn {
		if _, own := spec.Env[name]; own {
			continue
		}
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	own := len(env)
	for name, value := range spec.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env[own:])
	return env
}

// Check returns the reason why the process of a stdio server cannot start, without starting it: a
// missing program, interpreter or folder, or a file that is not executable. nil means that no reason
// is known. The error is a *schema.Error of kind server-failed.
func (spec Spec) Check() error {
	if err := spec.check(); err != nil {
		return err
	}
	path, fault := spec.find()
	if fault != nil {
		return fault
	}
	file := path
	if !filepath.IsAbs(file) {
		file = filepath.Join(spec.Dir, file)
	}
	switch info, err := os.Stat(file); {
	case err != nil:
		return spec.startFault(path, err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return spec.startFault(path, fs.ErrPermission)
	}
	return nil
}

// check returns the faults that can be found without starting a process.
func (spec Spec) check() *schema.Error {
	if spec.Type != "stdio" {
		return Failed("Server %q is of type %q and has no process; only stdio servers have one.", spec.ID, spec.Type)
	}
	if spec.Command == "" {
		return Failed("Server %q has no command; set \"command\" to the program to run.", spec.ID)
	}
	if strings.ContainsRune(spec.Command, 0) || slices.ContainsFunc(spec.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		return Failed("The command or an argument of server %q contains a NUL byte; remove it.", spec.ID)
	}
	for name, value := range spec.Env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return Failed("The environment of server %q has the name %q; names cannot be empty or contain \"=\" or NUL.", spec.ID, name)
		case strings.ContainsRune(value, 0):
			return Failed("The environment variable %s of server %q contains a NUL byte; remove it.", name, spec.ID)
		case name == reaperVariable || name == cookieVariable:
			return Failed("The environment of server %q sets %s, which is reserved for Callyard; remove it.", spec.ID, name)
		}
	}
	if spec.Dir != "" {
		if info, err := os.Stat(spec.Dir); err != nil || !info.IsDir() {
			return Failed("The working directory %q of server %q does not exist or cannot be read; create it or correct the path.", spec.Dir, spec.ID)
		}
	}
	return nil
}

// find returns the path of the command.
func (spec Spec) find() (string, *schema.Error) {
	if strings.Contains(spec.Command, "/") {
		return spec.Command, nil
	}
	path, ok := spec.Env["PATH"]
	if !ok {
		path = os.Getenv("PATH")
	}
	if path == "" {
		path = defaultPath
	}
	for _, dir := range filepath.SplitList(path) {
		// An empty or relative entry would make the result depend on the worker's directory.
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, spec.Command)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	if strings.ContainsAny(strings.TrimSpace(spec.Command), " \t") {
		return "", Failed("The server %q could not be started: there is no program with the name %q; write only the program in \"command\", and its arguments in \"args\".", spec.ID, spec.Command)
	}
	return "", Failed("The server %q could not be started: the command %q is not in PATH; install it, set \"command\" to its absolute path, or set PATH in its \"env\".", spec.ID, spec.Command)
}

// startFault turns the kernel's error for starting the command at path into a sentence with a fix.
func (spec Spec) startFault(path string, err error) *schema.Error {
	file := path
	if !filepath.IsAbs(file) && spec.Dir != "" {
		file = filepath.Join(spec.Dir, file)
	}
	fix := "see the error"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fix = "the file does not exist; correct the path or install it"
		if strings.ContainsAny(file, " \t") {
			fix += ". If it holds arguments, move them to \"args\""
		}
		if _, statErr := os.Stat(file); statErr == nil {
			fix = "the file exists, but its interpreter does not; install the interpreter"
		}
	case errors.Is(err, fs.ErrPermission):
		fix = "the file is not executable; set its execute permission, or start it through its interpreter"
	case errors.Is(err, syscall.ENOEXEC):
		fix = "the file is not a program for this machine; a script requires a first line such as #!/bin/sh"
	case errors.Is(err, syscall.E2BIG):
		fix = "its arguments and environment are too long; shorten them"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		fix = "no file descriptors are available; raise the limit on open files (ulimit -n)"
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		fix = "the process limit is reached; raise it (ulimit -u, pids of the container) or run fewer servers"
	}
	return Failed("The server %q could not be started with the command %q: %s (%w).", spec.ID, spec.Command, fix, err)
}
