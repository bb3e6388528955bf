package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
)

// sessionReport is the report of e2e/clients-mcp/v1-session.mjs.
type sessionReport struct {
	Said    string `json:"said"`
	Session string `json:"session"`
	Error   string `json:"error"`
}

func TestLegacySessionContinuesAtEveryFrontDoorAndAfterRestart(t *testing.T) {
	t.Parallel()
	folder := clientScripts(t)
	installedPath(t, "e2e", "clients-mcp", "node_modules", "@modelcontextprotocol", "sdk")
	nats := startNATS(t, t.TempDir())
	startWorker(t, setup{nats: nats.url, servers: serversFile(t, map[string]entry{"everything": fromNPM("everything", "stdio")})})
	key, hash := authn.Generate()
	stranger, strangersHash := authn.Generate()
	config := fmt.Sprintf("front_door:\n  keys:\n    - {name: ada, hash: %q}\n    - {name: bob, hash: %q}\n", hash, strangersHash)
	open := func(listen string) *door {
		return startFrontDoor(t, setup{nats: nats.url, config: config, listen: listen, env: []string{quickStop, "CALLYARD_KEY=" + key}})
	}
	a, b := open(""), open("")
	run := func(d *door, args ...string) (r sessionReport) {
		t.Helper()
		ran := newNode(t, clientWithin, folder, "v1-session.mjs", append([]string{d.url + "/mcp"}, args...)...)
		if ran.code != 0 {
			t.Fatalf("the client ended with code %d\n%s%s", ran.code, ran.out, ran.errors)
		}
		lines := strings.Split(strings.TrimSpace(ran.out), "\n")
		decode(t, []byte(lines[len(lines)-1]), &r)
		return r
	}
	var first sessionReport
	a.eventually(t, soon, "the first call", func() error {
		if first = run(a, key); first.Said != "Echo: good evening" {
			return fmt.Errorf("%+v", first)
		}
		return nil
	})
	goesOn := func(d *door, where string, args ...string) {
		t.Helper()
		if r := run(d, append([]string{key, first.Session}, args...)...); r.Said != first.Said || r.Session != first.Session {
			t.Fatalf("%s: %+v", where, r)
		}
	}
	goesOn(b, "at the other front door")
	for _, d := range []*door{a, b} {
		if r := run(d, stranger, first.Session); !strings.HasPrefix(r.Error, "404 ") {
			t.Errorf("a stranger with the id of the session: %+v", r)
		}
	}
	a.stop(t)
	again := open(strings.TrimPrefix(a.url, "http://"))
	again.eventually(t, soon, "the server at the front door", func() error {
		if r := run(again, key); r.Said != first.Said {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	goesOn(again, "after the restart of its front door")
	goesOn(b, "at the other front door, to its end", "end")
	for _, d := range []*door{again, b} {
		d.eventually(t, soon, "the end of the session", func() error {
			if r := run(d, key, first.Session); !strings.HasPrefix(r.Error, "404 ") {
				return fmt.Errorf("%+v", r)
			}
			return nil
		})
	}
}
