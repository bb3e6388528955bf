package bwrap

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/launch"
)

// lookTime limits the check of bwrap.
const lookTime = 10 * time.Second

// Options configure a Maker.
type Options struct {
	// Program is the bwrap program, a path or a name in PATH. If empty, it is "bwrap".
	Program  string
	Launcher *launch.Launcher
}

// Maker creates sandboxes. It is safe for concurrent use.
type Maker struct {
	o     Options
	path  string
	count atomic.Uint32 // sandboxes created so far
}

// Open finds bwrap and checks that it has the features a sandbox needs. The error is a
// *schema.Error. An operator may fix its cause without a new configuration.
func Open(ctx context.Context, o Options) (*Maker, error) {
	if !supported {
		return nil, launch.Unavailable("Bubblewrap sandboxes require Linux on amd64 or arm64; nothing is run without a sandbox. Add a docker section to the server instead.")
	}
	if o.Program == "" {
		o.Program = "bwrap"
	}
	path, err := exec.LookPath(o.Program)
	if err != nil {
		return nil, launch.Unavailable("The program %q, which creates sandboxes, was not found, and nothing is run without a sandbox; install it (Debian: apt-get install bubblewrap).", o.Program)
	}
	m := &Maker{o: o, path: path}
	if err := m.look(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// look checks the version of bwrap: older ones can neither limit /tmp nor disable nested user
// namespaces.
func (m *Maker) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, m.path, "--version").Output()
	version := strings.TrimSpace(strings.TrimPrefix(string(bytes.TrimSpace(out)), "bubblewrap"))
	if err != nil || version == "" {
		return launch.Unavailable("The program %s does not report its bubblewrap version (%v), and nothing is run without a sandbox; install bubblewrap 0.8.0 or newer.", m.path, err)
	}
	if !newEnough(version) {
		return launch.Unavailable("The program %s is bubblewrap %.40q, and nothing is run without a sandbox; 0.8.0 or newer is required.", m.path, version)
	}
	return nil
}

func newEnough(version string) bool {
	var numbers [2]int
	for i, text := range strings.SplitN(version, ".", 3) {
		if i == len(numbers) {
			break
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return false
		}
		numbers[i] = n
	}
	return numbers[0] > 0 || numbers[1] >= 8
}

// Check returns the reason why no sandbox can be created now, or nil. The error is a *schema.Error.
func (m *Maker) Check(ctx context.Context) error { return m.look(ctx) }

// Cause is the reason why a sandbox was killed, with the values of package sandbox. It is empty if the
// sandbox was stopped or ended by itself.
type Cause string

// Deadline is the cause of a sandbox that was killed at its time limit.
const Deadline Cause = "deadline"

func limitText(left time.Duration) string {
	return fmt.Sprintf("was killed at its time limit, %v after it was started", left.Round(time.Millisecond))
}
