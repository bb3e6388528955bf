package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// reloadEdits is the number of edits in the test of reloading. CALLYARD_TEST_RELOAD_EDITS
// overrides it.
const reloadEdits = 18

// editors is a fleet whose files are edited while it runs.
type editors struct {
	t                     *testing.T
	door                  *door
	config, servers, file string // paths
	doctor                []string
}

func hashOf(key string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key))) }

func configOf(keys ...string) string {
	text := "front_door:\n  drain_delay: 1ms\n  keys:\n"
	for _, key := range keys {
		text += fmt.Sprintf("    - {name: %s, hash: %q}\n", key, hashOf(key))
	}
	return text
}

// replace renames the new text into place, like editors and operators do.
func (e *editors) replace(path, text string) {
	e.t.Helper()
	write(e.t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		e.t.Fatal(err)
	}
}

func (e *editors) entries(all map[string]entry) string {
	e.t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		e.t.Fatal(err)
	}
	return string(text)
}

type reloadPart struct {
	Part, Version, Outcome, Error string
	Since, Tried                  time.Time
}

type reloadReport struct {
	Processes []struct {
		ID, Role string
		Parts    []reloadPart
	}
	Disagreements []struct{ Part, Server string }
}

func (e *editors) report() (r reloadReport, err error) {
	a, err := e.door.try("GET", "/configuration", "", "X-API-Key: honest")
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("/configuration answers %d: %s", a.status, a.body)
	}
	if err == nil {
		err = json.Unmarshal(a.body, &r)
	}
	return r, err
}

// wrong is a bad edit: the part, the resulting text, the expected message, and the number of
// processes that report it.
type wrong struct {
	part, path, text, why string
	count                 int
}

// refused waits until exactly the refusals of the edits are reported everywhere.
func (e *editors) refused(edits ...wrong) {
	e.t.Helper()
	of := make(map[string]wrong)
	for _, w := range edits {
		of[w.part] = w
	}
	eventually(e.t, soon, "the refused edits to be seen", func() error {
		r, err := e.report()
		if err != nil {
			return err
		}
		n := make(map[string]int)
		for _, p := range r.Processes {
			for _, in := range p.Parts {
				w, bad := of[in.Part]
				switch {
				case in.Outcome == "refused" && (!bad || !strings.Contains(in.Error, w.why)):
					return fmt.Errorf("%s %s refuses %+v", p.Role, p.ID, in)
				case in.Outcome == "refused":
					n[in.Part]++
				}
			}
		}
		for part, w := range of {
			if n[part] != w.count {
				return fmt.Errorf("%d processes refuse %s, not %d", n[part], part, w.count)
			}
		}
		return nil
	})
	var health struct{ Configuration []reloadPart }
	e.door.read(e.t, "/health", &health)
	metrics := string(e.door.ask(e.t, "GET", "/metrics", "", "X-API-Key: honest").body)
	for _, in := range health.Configuration { // only workers have the servers file
		w, bad := of[in.Part]
		if bad != (in.Outcome == "refused") || bad && strings.Contains(in.Error, w.why) {
			e.t.Errorf("/health, which everybody may read, tells %+v", in)
		}
		value := map[bool]string{true: "0", false: "1"}[bad]
		if !strings.Contains(metrics, `callyard_reload_ok{part="`+in.Part+`"} `+value+"\n") {
			e.t.Errorf("the metrics do not tell how it is with %s", in.Part)
		}
	}
	code, said, _ := command(e.t, nil, e.doctor...)
	for part, w := range of {
		if code != 1 || !strings.Contains(said, "the last edit of its "+part) || !strings.Contains(said, w.why) {
			e.t.Errorf("doctor ends with %d and does not tell of %s %q:\n%s", code, part, w.why, said)
		}
	}
}

// settled waits until all processes use the current version of every file.
func (e *editors) settled() {
	e.t.Helper()
	eventually(e.t, soon, "all edits to be in force", func() error {
		r, err := e.report()
		if err != nil {
			return err
		}
		for _, p := range r.Processes {
			for _, in := range p.Parts {
				if in.Outcome != "in force" {
					return fmt.Errorf("%s refuses %+v", p.ID, in)
				}
			}
		}
		if len(r.Processes) != 4 || len(r.Disagreements) > 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
}

// status waits until a request with a key gets that status.
func (e *editors) status(method, path, body, key string, want int) {
	e.t.Helper()
	eventually(e.t, soon, fmt.Sprintf("%s %s with the key %s to answer %d", method, path, key, want), func() error {
		a, err := e.door.try(method, path, body, "X-API-Key: "+key)
		if err == nil && a.status != want {
			err = fmt.Errorf("it answers %d: %.300s", a.status, a.body)
		}
		return err
	})
}

// TestFilesAreEditedUnderLoad makes good and bad edits of the servers, keys and policy of a fleet
// during calls: no honest call fails, and every refused edit is reported.
func TestFilesAreEditedUnderLoad(t *testing.T) {
	edits := reloadEdits
	if n, err := strconv.Atoi(os.Getenv("CALLYARD_TEST_RELOAD_EDITS")); err == nil {
		edits = n
	}
	dir := t.TempDir()
	e := &editors{t: t, config: filepath.Join(dir, "callyard.yaml"), servers: filepath.Join(dir, "servers.json"), file: filepath.Join(dir, "policy.yaml")}
	servers := map[string]entry{"steady": scripted(mcptest.Echo), "changing": scripted(mcptest.Echo)}
	e.replace(e.servers, e.entries(servers))
	e.replace(e.config, configOf("honest", "spare"))
	policy := func(round int) string {
		return fmt.Sprintf("# round %d\nrules:\n  - {name: never, match: {server: changing, tool: fail}, deny: round %d}\n", round, round)
	}
	e.replace(e.file, policy(0))
	nats := startNATS(t, t.TempDir())
	worker := startWorker(t, setup{nats: nats.url, servers: e.servers, flags: []string{"--policy", e.file}})
	other := startWorker(t, setup{nats: nats.url, servers: e.servers, flags: []string{"--policy", e.file}})
	e.door = startFrontDoor(t, setup{nats: nats.url, flags: []string{"--policy", e.file, "--config", e.config}})
	approver := startApprover(t, setup{nats: nats.url, flags: []string{"--policy", e.file}})
	e.doctor = []string{"doctor", "--url", e.door.url, "--key", "honest", "--nats", nats.url}
	e.status("POST", "/servers/steady/tools/echo", `{"text":"x"}`, "honest", http.StatusOK)
	e.status("POST", "/servers/changing/tools/echo", `{"text":"x"}`, "honest", http.StatusOK)
	e.settled()

	l := startLoad(t, 2, func(lane, n int) error {
		server := []string{"steady", "changing"}[(lane+n)%2]
		a, err := e.door.tryCall(server, "echo", fmt.Sprintf(`{"text":"%d %d"}`, lane, n), "X-API-Key: honest")
		if err == nil && a.status != http.StatusOK {
			err = &refusal{a}
		}
		return err
	})
	made := 0
	for round := 1; made < edits; round++ {
		// Three good edits at the same time.
		changed := scripted(mcptest.Echo)
		changed.Env["ROUND"] = strconv.Itoa(round)
		changed.Sessions = 1 + round%2
		servers["changing"] = changed
		delete(servers, fmt.Sprintf("extra-%d", round-1))
		servers[fmt.Sprintf("extra-%d", round)] = scripted(mcptest.Echo)
		mine := fmt.Sprintf("key-%d", round)
		goodServers, goodKeys, goodPolicy := e.entries(servers), configOf("honest", mine), policy(round)
		e.replace(e.servers, goodServers)
		e.replace(e.config, goodKeys)
		e.replace(e.file, goodPolicy)
		made += 3
		e.status("POST", fmt.Sprintf("/servers/extra-%d/tools/echo", round), `{"text":"x"}`, mine, http.StatusOK)
		if round > 1 {
			e.status("GET", "/servers", "", fmt.Sprintf("key-%d", round-1), http.StatusUnauthorized)
			e.status("GET", fmt.Sprintf("/servers/extra-%d", round-1), "", mine, http.StatusNotFound)
		}
		eventually(t, soon, "the policy to be in force", func() error {
			a, err := e.door.tryCall("changing", "fail", `{}`, "X-API-Key: honest")
			if err == nil && (a.status != http.StatusForbidden || !strings.Contains(string(a.body), fmt.Sprintf("round %d", round))) {
				err = fmt.Errorf("%d %s", a.status, a.body)
			}
			return err
		})
		e.settled()
		// And three bad ones, which are reverted.
		noProgram := maps.Clone(servers)
		noProgram["changing"] = entry{Command: "no-such-program"}
		bad := []wrong{
			{"policy", e.file, "rules:\n  - {name: a, level: 9}\n", "rules[0].level", 4},
			{"servers", e.servers, e.entries(noProgram), "no-such-program", 2},
			{"keys", e.config, "front_door: {drain_delay: 1ms}\n", "is empty now", 1},
		}
		if round%2 == 0 {
			bad = []wrong{
				{"policy", e.file, "rules: [", "policy.yaml", 4},
				{"servers", e.servers, goodServers[:60], "servers.json", 2}, // half of it
				{"keys", e.config, strings.Replace(goodKeys, "sha256:", "sha1:", 1), "hash", 1},
			}
		}
		for _, w := range bad {
			e.replace(w.path, w.text)
		}
		e.refused(bad...)
		if round == 1 {
			for _, p := range []*process{worker.process, other.process, e.door.process, approver.process} {
				p.signal(t, syscall.SIGHUP) // reloads everything and changes nothing
			}
			e.refused(bad...)
		}
		e.replace(e.servers, goodServers)
		e.replace(e.config, goodKeys)
		e.replace(e.file, goodPolicy)
		made += 6
		e.settled()
		if round == 1 {
			e.status("POST", "/servers/changing/restart", "", "honest", http.StatusAccepted)
		}
	}
	e.door.says(t, `a caller restarts a server".*"server":"changing".*"by":"honest"`)
	l.more(t, 20)
	l.end()
	l.none(t, fmt.Sprintf("%d edits", made))
	t.Logf("%d edits, %d calls, %d failed", made, l.calls.Load(), l.failed.Load())
	if worker.ended() || other.ended() {
		t.Error("a worker ended")
	}
}
