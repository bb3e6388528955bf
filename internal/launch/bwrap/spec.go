package bwrap

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/hostpath"
	"github.com/callyard/callyard/pkg/schema"
)

// Config holds the settings of a server's sandbox. Zero values mean the defaults of [Resolve].
type Config = config.Bubblewrap

// Default limits of a sandbox.
const (
	DefaultMemory   = 512 << 20
	DefaultPIDs     = 64
	DefaultTmpfs    = 16 << 20
	DefaultFiles    = 256
	DefaultFileSize = 64 << 20
	DefaultTime     = 5 * time.Minute

	// Runtimes reserve much more address space than they use, so this limit only stops a program that
	// maps memory endlessly.
	addresses = 256 << 30
	mostTime  = 24 * time.Hour
)

// Program is the program to run in a sandbox.
type Program struct {
	Command string // a path inside, or a name in the PATH inside
	Args    []string
	Env     map[string]string
	Dir     string // working directory inside; /tmp if empty
}

// Spec is a checked sandbox. Only [Resolve] creates one.
type Spec struct {
	Server string        // id of the server
	Time   time.Duration // maximum time from start to kill

	program  Program
	binds    []bind
	limits   limits
	tmpfs    int64
	settings []Setting
}

type bind struct {
	host   string // the resolved path of place when it was checked
	place  hostpath.Place
	inside string
}

// limits are rlimits. Each applies to one process, except processes, which counts those of the sandbox.
type limits struct {
	data, processes, files, file int64
	cpu                          time.Duration
}

// Setting is one property of a sandbox, for people. From is "default" or "configured".
type Setting struct{ Key, Value, From string }

// Describe returns all properties of the sandbox in a fixed order. It shows names of variables but no
// values, and no arguments.
func (s *Spec) Describe() []Setting { return slices.Clone(s.settings) }

// Resolve checks the settings of a server's sandbox and adds every default. It starts nothing. The
// error is a *schema.Error that lists every fault, one on each line.
func Resolve(server string, c Config, p Program) (Spec, error) {
	s := Spec{Server: server, Time: c.Time, program: Program{Command: p.Command, Args: slices.Clone(p.Args), Dir: c.Workdir, Env: map[string]string{}}}
	var faults []error
	add := func(key, format string, args ...any) {
		faults = append(faults, fmt.Errorf("bubblewrap.%s of the server %q: %s", key, server, fmt.Sprintf(format, args...)))
	}
	amount := func(key string, value, fallback, least, most int64) int64 {
		if value == 0 {
			return fallback
		}
		if value < least || value > most {
			add(key, "%d is out of range; write a number from %d to %d.", value, least, most)
			return fallback
		}
		return value
	}
	maps.Copy(s.program.Env, p.Env)
	maps.Copy(s.program.Env, c.Env)
	s.tmpfs = amount("tmpfs", c.Tmpfs, DefaultTmpfs, 4096, 1<<34)
	s.limits = limits{
		data:      amount("memory", c.Memory, DefaultMemory, 16<<20, 1<<40),
		processes: amount("pids", c.PIDs, DefaultPIDs, 4, 32768),
		files:     amount("files", c.Files, DefaultFiles, 16, 1<<20),
		file:      amount("file_size", c.File, DefaultFileSize, 4096, 1<<40),
	}
	switch {
	case s.Time == 0:
		s.Time = DefaultTime
	case s.Time < time.Millisecond || s.Time > mostTime:
		add("time", "must be from 1ms to 24h.")
	}
	s.limits.cpu = max(s.Time.Round(time.Second), time.Second)
	if p.Command == "" {
		add("command", "is missing; set the program to start in the \"command\" of the server.")
	}
	if strings.ContainsRune(p.Command, 0) || slices.ContainsFunc(p.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		add("command", "it or its arguments contain a NUL character; remove it.")
	}
	if s.program.Dir == "" {
		s.program.Dir = p.Dir
	}
	if s.program.Dir == "" {
		s.program.Dir = "/tmp"
	}
	if !path.IsAbs(s.program.Dir) {
		add("workdir", "%q is not absolute; write an absolute path.", s.program.Dir)
	}
	for _, name := range slices.Sorted(maps.Keys(s.program.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(s.program.Env[name], 0) {
			add("env", "the variable %q has an invalid name or value; names must not contain \"=\", and neither can contain NUL.", name)
		}
		if strings.HasPrefix(name, "LD_") {
			// bubblewrap itself would start with it, on the host.
			add("env", "%s would change the program that builds the sandbox; remove it.", name)
		}
	}
	for _, v := range c.Volumes {
		if b, why := readVolume(v); why != "" {
			add("volumes", "%s", why)
		} else {
			s.binds = append(s.binds, b)
		}
	}
	if len(faults) > 0 {
		return Spec{}, &schema.Error{Kind: schema.KindInvalidRequest, Detail: errors.Join(faults...).Error()}
	}
	s.describe(&c)
	return s, nil
}

// readVolume parses HOST:INSIDE:ro, the only supported form.
func readVolume(v string) (b bind, why string) {
	parts := strings.Split(v, ":")
	if len(parts) != 3 || !path.IsAbs(parts[0]) || !path.IsAbs(parts[1]) || parts[2] != "ro" {
		return b, fmt.Sprintf("%q is invalid; write HOST:INSIDE:ro with absolute paths. A sandbox can write only to /tmp.", v)
	}
	b = bind{inside: path.Clean(parts[1])}
	for _, taken := range [...]string{"/", "/proc", "/dev", "/sys", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc"} {
		if b.inside == taken || taken != "/" && strings.HasPrefix(b.inside, taken+"/") {
			return b, fmt.Sprintf("%q covers %s of the sandbox; use another path in it.", v, b.inside)
		}
	}
	place, look := hostpath.Keep(parts[0], false)
	switch {
	case look.Socket:
		return b, fmt.Sprintf("%s is a socket or a device; access to the socket of a container engine means root on the host. Remove it.", parts[0])
	case look.Sensitive:
		return b, fmt.Sprintf("%s is, contains or is inside a protected path of the host; use a folder created for this server, such as one in /srv or /opt.", parts[0])
	}
	b.host, b.place = look.Real, place
	return b, ""
}

func (s *Spec) describe(c *Config) {
	add := func(key, value string, set bool) {
		from := "default"
		if set {
			from = "configured"
		}
		s.settings = append(s.settings, Setting{key, value, from})
	}
	mib := func(n int64) string {
		if n%(1<<20) == 0 {
			return strconv.FormatInt(n>>20, 10) + " MiB"
		}
		return strconv.FormatInt(n, 10) + " bytes"
	}
	add("isolation", "bubblewrap: weaker than a container", true)
	add("command", s.program.Command, true)
	if n := len(s.program.Args); n > 0 {
		add("args", fmt.Sprintf("[%d not shown]", n), true)
	}
	if len(s.program.Env) > 0 {
		add("env", strings.Join(slices.Sorted(maps.Keys(s.program.Env)), ", "), true)
	}
	add("network", "none", false)
	add("system", "/usr and its dependencies, read only", false)
	for _, b := range s.binds {
		add("volume", b.host+":"+b.inside+":ro", true)
	}
	add("tmpfs", "/tmp "+mib(s.tmpfs), c.Tmpfs != 0)
	add("workdir", s.program.Dir, c.Workdir != "")
	add("user", "a separate user per sandbox if the worker is root, otherwise the worker's, without capabilities", false)
	add("capabilities", "none", false)
	add("namespaces", "its own cgroup, ipc, mount, network, pid, user, uts", false)
	add("seccomp", "Callyard's filter", false)
	add("memory", mib(s.limits.data)+" of each process", c.Memory != 0)
	add("cpus", "unlimited", false)
	add("pids", strconv.FormatInt(s.limits.processes, 10), c.PIDs != 0)
	add("files", strconv.FormatInt(s.limits.files, 10), c.Files != 0)
	add("file_size", mib(s.limits.file), c.File != 0)
	add("time", s.Time.Round(time.Millisecond).String()+" from its start, then it is killed", c.Time != 0)
	add("pool", "0 pre-started, each used once", false)
}
