package stories

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/e2e/fabric"
)

// policy is the policy of the shared fabric. Calls without a rule run at once.
const policy = `
rules:
  - name: short questions
    match: {server: office, tool: add}
    approval: {groups: [ops], expires: 2s}
  - name: people are asked
    match: {server: [office, tickets]}
    approval: {groups: [ops], expires: 30m, slack_level: 2}
  - name: the caller is asked
    match: {server: desk}
    approval: {by: caller, expires: 30m}
  - name: behind glass
    match: {server: vault}
    level: 3
  - name: the rest
    match: {server: "*"}
    level: 1
`

// all is the shared state of the tests of this binary.
var all struct {
	fabric  shared
	cluster shared
	source  string
	images  fabric.Images
	effects string // the folder with the records of tools, which workers see as /effects
}

// shared is a fabric that is opened by the first test which needs it, and closed at the end.
type shared struct {
	once sync.Once
	how  func() (*fabric.Fabric, error)
	nats []string // names of its servers
	f    *fabric.Fabric
	err  error
}

func (s *shared) of(t *testing.T) *fabric.Fabric {
	t.Helper()
	s.once.Do(func() { s.f, s.err = s.how() })
	must(t, s.err)
	s.f.Watch(t)
	began := time.Now()
	t.Cleanup(func() { s.refused(t, began) })
	return s.f
}

// refused fails the test if NATS has refused something since then: a role lacks a
// required permission.
func (s *shared) refused(t *testing.T, since time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range s.nats {
		text, err := s.f.Part(name).Logs(ctx, since)
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "Violation") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func (s *shared) close() error {
	if s.f == nil {
		return nil
	}
	return s.f.Close()
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	ctx := context.Background()
	var err error
	if all.source, err = fabric.Source(ctx); err != nil {
		fail(err)
		return code
	}
	// Each worker runs as another user.
	if all.effects, err = os.MkdirTemp("", "callyard-stories-"); err != nil {
		fail(err)
		return code
	}
	defer func() { fail(os.RemoveAll(all.effects)) }()
	fail(os.Chmod(all.effects, 0o777))
	if all.images, err = fabric.Build(ctx, all.source, "frontdoor", "approver", "worker", "nats", "redis"); err != nil {
		fail(err)
		return code
	}
	all.fabric.nats, all.cluster.nats = []string{"nats"}, []string{"nats-1", "nats-2", "nats-3"}
	all.fabric.how = func() (*fabric.Fabric, error) {
		worker, err := scripted(fabric.Servers{
			"demo":   {"command": "/demo", "safeTools": []string{"echo", "add"}},
			"lab":    {"command": "/scripted-server", "args": []string{"echo"}},
			"again":  {"command": "/scripted-server", "args": []string{"echo"}, "safeTools": []string{"effect"}},
			"office": {"command": "/scripted-server", "args": []string{"echo"}},
		})
		if err != nil {
			return nil, err
		}
		return fabric.Open(ctx, fabric.Options{FrontDoors: 2, Workers: 2, Worker: worker, Policy: policy, Images: all.images, Source: all.source})
	}
	all.cluster.how = func() (*fabric.Fabric, error) {
		worker, err := scripted(fabric.Servers{"lab": {"command": "/scripted-server", "args": []string{"echo"}}})
		if err != nil {
			return nil, err
		}
		return fabric.Open(ctx, fabric.Options{Cluster: true, FrontDoors: 2, Workers: 2, Worker: worker, Policy: policy, Images: all.images, Source: all.source})
	}
	code = m.Run()
	fail(errors.Join(all.fabric.close(), all.cluster.close()))
	if code == 0 {
		fail(goleak.Find())
	}
	return code
}

// scripted returns a worker with the scripted server and the folder of effects.
func scripted(servers fabric.Servers) (fabric.Worker, error) {
	folder := os.Getenv("CALLYARD_TEST_BIN")
	if folder == "" {
		folder = filepath.Join(all.source, ".cache", "bin")
	}
	// Use a copy that exists as long as the workers, because the original may be rebuilt.
	program := filepath.Join(all.effects, "scripted-server")
	if _, err := os.Stat(program); err != nil {
		text, err := os.ReadFile(filepath.Join(folder, "scripted-server"))
		if err != nil {
			return fabric.Worker{}, fmt.Errorf("%w; run scripts/test.sh --setup, which brings it", err)
		}
		if err := errors.Join(os.WriteFile(program, text, 0o755), os.Chmod(program, 0o755)); err != nil {
			return fabric.Worker{}, err
		}
	}
	return fabric.Worker{Servers: servers, Mounts: []string{program + ":/scripted-server:ro", all.effects + ":/effects"}}, nil
}
