package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

const (
	attachedInFlight = 4 // of each program, as in clients/*/bench/effects.*
	attachedSeed     = 20
)

// attachSize returns the number of attached programs and the time for which they are ended in
// turn. `make attached` sets CALLYARD_ATTACH_PROGRAMS and CALLYARD_ATTACH_FOR.
func attachSize(t *testing.T) (programs int, d time.Duration) {
	t.Helper()
	programs, d = 4, 8*time.Second
	var err error
	if text := os.Getenv("CALLYARD_ATTACH_PROGRAMS"); text != "" {
		if programs, err = strconv.Atoi(text); err != nil || programs < 4 {
			t.Fatalf("CALLYARD_ATTACH_PROGRAMS is a number of at least 4, not %q", text)
		}
	}
	if text := os.Getenv("CALLYARD_ATTACH_FOR"); text != "" {
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatalf("CALLYARD_ATTACH_FOR: %v", err)
		}
	}
	return programs, d
}

// attachedServer is a server of programs of one language, which record their runs.
type attachedServer struct {
	name     string
	command  []string
	env      []string
	effects  string
	programs []*process
	kills    int
	drains   int

	mu      sync.Mutex
	answers map[string]string // by word: "done", "unknown" or "refused"
}

func (s *attachedServer) start(t *testing.T) *process {
	t.Helper()
	return start(t, program{name: s.name, path: s.command[0], args: s.command[1:], env: s.env})
}

// call calls the tool once and records the outcome. Any outcome other than the three
// is an error.
func (s *attachedServer) call(d *door, word string) error {
	a, err := d.tryCall(s.name, "record", fmt.Sprintf(`{"word":%q}`, word))
	if err != nil {
		return err
	}
	end := ""
	var p struct {
		Type      string `json:"type"`
		Retryable bool   `json:"retryable"`
	}
	_ = json.Unmarshal(a.body, &p) // a result has no such field
	switch {
	case a.status == http.StatusOK && strings.Contains(string(a.body), word):
		end = "done"
	case p.Type == "/problems/outcome-unknown":
		end = "unknown"
	case p.Retryable && (a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests):
		end = "refused"
	default:
		return &refusal{a}
	}
	s.mu.Lock()
	s.answers[word] = end
	s.mu.Unlock()
	return nil
}

// check compares the answers with the runs.
func (s *attachedServer) check(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(s.effects)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, word := range strings.Fields(string(text)) {
		ran[word]++
	}
	ends := map[string]int{}
	for word, end := range s.answers {
		ends[end]++
		if n := ran[word]; n > 1 || n == 0 && end == "done" || n > 0 && end == "refused" {
			t.Errorf("%s: the call %s ended as %s and ran %d times", s.name, word, end, n)
		}
	}
	t.Logf("%s: %d drained, %d killed; calls: %v", s.name, s.drains, s.kills, ends)
	if most := s.kills * attachedInFlight; ends["unknown"] > most {
		t.Errorf("%s: %d calls are unknown after %d kills of programs with %d calls each", s.name, ends["unknown"], s.kills, attachedInFlight)
	}
	if ends["done"] == 0 || s.drains == 0 {
		t.Errorf("%s: nothing was done, or no program drained", s.name)
	}
}

// TestAttachedProgramsEndUnderLoad drains or kills attached programs in turn and starts
// others, while their tools are called. A draining program loses no call, the calls of a
// killed one end as unknown, and nothing runs twice.
func TestAttachedProgramsEndUnderLoad(t *testing.T) {
	programsOf, span := attachSize(t)
	runClient(t, "", "clients/typescript", []string{"node_modules/.bin/tsc", "--project", ".", "--outDir", "dist/effects"})
	typescript, python := filepath.Join(programs.root, "clients", "typescript"), filepath.Join(programs.root, "clients", "python")
	at, dir := fmt.Sprintf("127.0.0.1:%d", porttest.Port(t)), t.TempDir()
	servers := []*attachedServer{
		{name: "effects-typescript", command: []string{"node", filepath.Join(typescript, "dist", "effects", "bench", "effects.js")}},
		{name: "effects-python", command: []string{filepath.Join(programs.root, ".cache", "python", "bin", "python"), filepath.Join(python, "bench", "effects.py")}},
	}
	entries := map[string]json.RawMessage{}
	for _, s := range servers {
		key, entry := attachEntry(t, s.name)
		entries[s.name] = entry
		s.effects, s.answers = filepath.Join(dir, s.name), map[string]string{}
		s.env = []string{"EFFECTS=" + s.effects, "ATTACH_URL=ws://" + at, "ATTACH_KEY=" + key, "PYTHONPATH=" + python, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "servers.json")
	write(t, file, string(text))
	up := startUp(t, setup{servers: file, data: t.TempDir(), listen: porttest.Address(t), env: []string{quickStop, "CALLYARD_WORKER_ATTACH_LISTEN=" + at}})
	for _, s := range servers {
		for range programsOf / len(servers) {
			s.programs = append(s.programs, s.start(t))
		}
	}
	whole := func(s *attachedServer) {
		eventually(t, 2*time.Minute, "all programs of "+s.name+" to be attached", func() error { return attachedTo(up, s.name, len(s.programs)) })
	}
	for _, s := range servers {
		whole(s)
	}
	load := startLoad(t, min(2*programsOf, 64), func(lane, n int) error {
		return servers[lane%len(servers)].call(up, fmt.Sprintf("w%d-%d", lane, n))
	})
	random := rand.New(rand.NewPCG(attachedSeed, 0))
	// On a slow machine few programs end in that time. Each server needs both ends.
	both := func() bool {
		return !slices.ContainsFunc(servers, func(s *attachedServer) bool { return s.drains == 0 || s.kills == 0 })
	}
	for began := time.Now(); time.Since(began) < span || !both(); {
		for _, s := range servers {
			load.more(t, int64(2*programsOf))
			whole(s) // SIGTERM kills a program that has not installed its handler yet
			i := random.IntN(len(s.programs))
			if random.IntN(2) == 0 {
				s.programs[i].signal(t, syscall.SIGTERM)
				if code := s.programs[i].wait(t, stopWithin); code != 0 {
					t.Errorf("a program of %s that drained exits with %d: %s", s.name, code, s.programs[i].out)
				}
				s.drains++
			} else {
				s.programs[i].kill9(t)
				s.kills++
			}
			s.programs[i] = s.start(t)
		}
	}
	load.end()
	load.none(t, "calls of attached programs")
	for _, s := range servers {
		s.check(t)
		whole(s)
	}
	for _, s := range servers {
		for _, p := range s.programs {
			p.signal(t, syscall.SIGTERM)
		}
	}
	up.stop(t)
}

// attachEntry returns a key for attaching a server, and the entry of the server.
func attachEntry(t *testing.T, server string) (key string, entry json.RawMessage) {
	t.Helper()
	key, file := newAttachKey(t, server)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	decode(t, text, &whole)
	return key, whole.Servers[server]
}

// attachedTo returns an error unless the server has that number of sessions.
func attachedTo(d *door, server string, want int) error {
	a, err := d.try(http.MethodGet, "/workers", "")
	if err != nil {
		return err
	}
	var fleet struct {
		Workers []struct {
			Servers []struct {
				ID       string `json:"id"`
				Sessions int    `json:"sessions"`
			} `json:"servers"`
		} `json:"workers"`
	}
	if err := json.Unmarshal(a.body, &fleet); err != nil {
		return err
	}
	got := 0
	for _, w := range fleet.Workers {
		for _, s := range w.Servers {
			if s.ID == server {
				got += s.Sessions
			}
		}
	}
	if got != want {
		return fmt.Errorf("%s has %d of %d sessions", server, got, want)
	}
	return nil
}
