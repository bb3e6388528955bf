package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// damages are the ways to damage a file of a stopped data folder.
var damages = []struct {
	name string
	do   func(path string, text []byte) error
}{
	{"truncate", func(path string, text []byte) error { return os.WriteFile(path, text[:len(text)/2], 0o600) }},
	{"flip", func(path string, text []byte) error {
		for i := len(text) / 2; i < min(len(text)/2+4, len(text)); i++ {
			text[i] ^= 0xff
		}
		return os.WriteFile(path, text, 0o600)
	}},
	{"empty", func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) }},
	{"remove", func(path string, _ []byte) error { return os.Remove(path) }},
}

// stoppedData is a data folder whose process has stopped, and a record of its content.
type stoppedData struct {
	dir, servers, effects string
	calls                 []string // IDs of keyed calls that ran; call i has the key key-i and the effect kept-i
	batch                 batchState
	open                  batchState // a batch whose only line waits for an approval
	coming                batchState // an open batch; its only call has run
	held                  held
}

const (
	keptCalls = 10
	keptLines = 200
)

func (k *stoppedData) body(effect string) string {
	return fmt.Sprintf(`{"server":"books","tool":"effect","arguments":{"path":%q,"id":%q}}`, k.effects, effect)
}

// send sends call i, again or for the first time.
func (k *stoppedData) send(t *testing.T, d *door, i int) answer {
	return d.ask(t, "POST", "/calls", k.body(fmt.Sprintf("kept-%d", i)), "Content-Type: application/json", "Prefer: respond-async", fmt.Sprintf("Idempotency-Key: key-%d", i))
}

func keep(t *testing.T) *stoppedData { return keepAs(t, func(d *door) { d.stop(t) }) }

// keepAs fills a data folder and ends its process with end.
func keepAs(t *testing.T, end func(*door)) *stoppedData {
	k := &stoppedData{dir: t.TempDir(), effects: filepath.Join(t.TempDir(), "effects"), servers: diskServersOf(t)}
	d := k.start(t, k.dir)
	for i := range keptCalls {
		var said struct {
			ID string `json:"id"`
		}
		if a := k.send(t, d, i); json.Unmarshal(a.body, &said) != nil || said.ID == "" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		k.calls = append(k.calls, said.ID)
	}
	k.batch = d.startBatch(t, effectLines("books", k.effects, 0, keptLines, 0))
	d.waitBatch(t, k.batch.ID, startWithin)
	for _, id := range k.calls {
		if s := d.callState(t, id); s.State != "succeeded" {
			t.Fatalf("a call is %s", s.State)
		}
	}
	k.open = d.startBatch(t, effectLines("pay", k.effects, 900, 1, 0))
	d.eventually(t, startWithin, "holding a line of a batch", func() error {
		if a := d.ask(t, "GET", "/batches/"+k.open.ID+"/held", ""); !bytes.Contains(a.body, []byte("pay")) {
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		return nil
	})
	decode(t, d.ask(t, "POST", "/batches?open=true", effectLines("books", k.effects, 901, 1, 0), ndjsonType).body, &k.coming)
	d.eventually(t, startWithin, "running a line of an open batch", func() error {
		if n := len(d.results(t, k.coming.ID, "")); n != 1 {
			return fmt.Errorf("%d results", n)
		}
		return nil
	})
	k.held = d.hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"held"}`, k.effects))
	end(d)
	return k
}

func diskServersOf(t *testing.T) string {
	return serversFile(t, map[string]entry{"books": scripted(mcptest.Echo), "pay": risky(2, scripted(mcptest.Echo))})
}

func (k *stoppedData) setup(dir string, flags ...string) setup {
	return setup{data: dir, servers: k.servers, env: []string{quickStop}, flags: append(flags, "--approver-listen", "127.0.0.1:0")}
}

func (k *stoppedData) start(t *testing.T, dir string, flags ...string) *door {
	t.Helper()
	d := startUp(t, k.setup(dir, flags...))
	d.waitServers(t, 1, "books", "pay")
	return d
}

// files returns the non-empty files of the folder.
func (k *stoppedData) files(t *testing.T) (all []string) {
	err := filepath.WalkDir(k.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if rel, _ := filepath.Rel(k.dir, path); err == nil && info.Size() > 0 {
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// damaged copies the folder and damages one file.
func (k *stoppedData) damaged(t *testing.T, file string, do func(string, []byte) error) string {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(k.dir)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err == nil {
		err = do(filepath.Join(dir, file), text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tries starts the program on a folder and returns its output if it does not start.
// started is true if it keeps running.
func (k *stoppedData) tries(t *testing.T, dir string) (said string, started bool) {
	p := k.setup(dir).program(t, "callyard")
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.path, p.args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.dir, append(cleanEnviron(), p.env...), endsWithUs()
	cmd.Stderr = &out
	up, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := up.Read(make([]byte, 1)); n > 0 { // the start screen
		started = true
		_ = cmd.Process.Signal(os.Interrupt) // it ends gracefully
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !started && !errors.As(err, &exit) {
		t.Errorf("it ended as %v without a start screen", err)
	}
	return out.String(), started
}

// whole checks that nothing is lost and nothing runs again.
func (k *stoppedData) whole(t *testing.T, dir string) {
	d := k.start(t, dir)
	for i, id := range k.calls {
		if s := d.callStateNow(t, id); s.State != "succeeded" {
			t.Errorf("call %d is %s", i, s.State)
		}
		if a := k.send(t, d, i); a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the key of call %d is forgotten: %d %s", i, a.status, a.body)
		}
	}
	if n := len(d.results(t, k.batch.ID, "")); n != keptLines {
		t.Errorf("%d of %d lines of the batch are answered", n, keptLines)
	}
	over, err := time.Parse(time.RFC3339, k.held.Expires)
	if err != nil {
		t.Fatal(err)
	}
	// All damages of all files take longer than the deadline of a confirmation.
	if s := d.callStateNow(t, k.held.CallID); s.State != "held" && (s.State != "expired" || time.Now().Before(over)) {
		t.Errorf("the held call is %s", s.State)
	}
	d.stop(t)
	k.once(t)
}

// once checks that nothing ran twice.
func (k *stoppedData) once(t *testing.T) {
	t.Helper()
	if once, twice := countEffects(t, k.effects); twice > 0 || once != keptCalls+keptLines+1 {
		t.Errorf("%d effects, %d of them more than once; want %d", once, twice, keptCalls+keptLines+1)
	}
}

// told checks that clients that wait for a call or a batch from before an accepted loss get an
// answer: the outcome, or that it is unknown.
func (k *stoppedData) told(t *testing.T, d *door, file string) {
	t.Helper()
	unknown := func(a answer) bool {
		return a.status == http.StatusGatewayTimeout && strings.Contains(string(a.body), "outcome-unknown") && strings.Contains(string(a.body), "lost with a damaged data folder")
	}
	journals := slices.ContainsFunc([]string{"callyard_journals", "callyard_calls", "callyard_intents", "callyard_results", "callyard_objects"}, func(s string) bool { return strings.Contains(file, s) })
	for i, id := range k.calls {
		a := d.ask(t, "GET", "/calls/"+id, "")
		var s callState
		if a.status == http.StatusOK {
			decode(t, a.body, &s)
		}
		if !unknown(a) && s.State != "succeeded" && (s.State != "unknown" || !journals) {
			t.Errorf("call %d: %d %s", i, a.status, a.body)
		}
	}
	if a := d.ask(t, "GET", "/calls/"+k.held.CallID, ""); strings.Contains(file, "callyard_ledger") && !unknown(a) && !strings.Contains(string(a.body), `"state":"held"`) {
		t.Errorf("the held call: %d %s", a.status, a.body)
	}
	for _, b := range []struct {
		batchState
		calls int
	}{{k.batch, keptLines}, {k.open, 1}, {k.coming, 1}} {
		if a := d.ask(t, "GET", "/batches/"+b.ID, ""); unknown(a) {
			continue // its manifest is lost
		}
		if !journals && b.ID != k.batch.ID {
			continue
		}
		end := d.waitBatch(t, b.ID, startWithin)
		lines := make(map[int]string)
		for _, l := range d.results(t, b.ID, "") {
			lines[l.Index] = l.State
		}
		if len(lines) < b.calls || end.Calls > len(lines) {
			t.Errorf("%d of %d lines of a batch that is %s are answered", len(lines), max(end.Calls, b.calls), end.State)
		}
		if n := end.Counts["unknown"]; n > 0 && end.State != "failed" {
			t.Errorf("a batch with %d lines of which nobody knows is %s", n, end.State)
		}
		if a := d.ask(t, "POST", "/batches/"+b.ID+"/calls", effectLines("books", k.effects, 902, 1, 0), ndjsonType); a.status != http.StatusConflict {
			t.Errorf("a batch from before the loss takes calls: %d %s", a.status, a.body)
		}
	}
}

var dataFolder = regexp.MustCompile(`(?m)^.*(damage|damaged|missing|cut from|other bytes|grew|warrant|secret).*$`)

func TestDamagedDataFolderIsReportedOrRepaired(t *testing.T) {
	t.Parallel()
	k := keep(t)
	files := k.files(t)
	all := os.Getenv("CALLYARD_DAMAGE") == "all"
	named, repaired := 0, 0
	for i, file := range files {
		for j, d := range damages {
			messages := strings.HasSuffix(file, ".blk")
			if !all && (i%len(damages) != j || !messages && i%3 != 0) && !(messages && strings.Contains(file, "callyard_keys")) {
				continue // all combinations take ten minutes
			}
			t.Run(d.name+" "+file, func(t *testing.T) {
				dir := k.damaged(t, file, d.do)
				said, started := k.tries(t, dir)
				if !started {
					named++
					if !strings.Contains(said, file) && !strings.Contains(said, filepath.Base(file)) || !dataFolder.MatchString(said) {
						t.Errorf("it does not start, and does not say why: %s", said)
					}
					return
				}
				if repaired++; all || repaired%4 == 0 {
					k.whole(t, dir)
				}
			})
		}
	}
	t.Logf("%d files; the start was refused %d times, and %d times nothing was lost", len(files), named, repaired)
	k.once(t)
}

func TestAnAcceptedLossRunsNothingAgainAndIsCounted(t *testing.T) {
	t.Parallel()
	k := keep(t)
	var blocks []string
	for _, file := range k.files(t) {
		if strings.HasSuffix(file, ".blk") {
			blocks = append(blocks, file)
		}
	}
	if len(blocks) < 6 {
		t.Fatalf("only %v has messages", blocks)
	}
	all := os.Getenv("CALLYARD_DAMAGE") == "all"
	confirmed := 0
	for _, file := range blocks {
		for _, d := range damages {
			if !all && d.name != "flip" {
				continue
			}
			t.Run(d.name+" "+file, func(t *testing.T) {
				up := k.start(t, k.damaged(t, file, d.do), "--accept-loss")
				if !bytes.Contains(up.get(t, "/metrics"), []byte("callyard_accepted_losses 1")) {
					t.Error("the loss is not counted")
				}
				stream := filepath.Base(filepath.Dir(filepath.Dir(file)))
				if health := up.get(t, "/health"); !bytes.Contains(health, []byte(`"accepted_losses":{"files":1,`)) || !bytes.Contains(health, []byte(`"streams":["`+stream+`"]`)) {
					t.Errorf("/health does not show the loss: %s", health)
				}
				for i := range k.calls {
					a := k.send(t, up, i)
					known := a.header.Get("Idempotency-Replayed") == "true" || a.status == http.StatusGatewayTimeout && strings.Contains(string(a.body), "outcome-unknown")
					if !known {
						t.Errorf("the key of call %d: %d %s", i, a.status, a.body)
					}
				}
				if a := up.confirm(t, k.held.ID, "true"); strings.Contains(file, "callyard_ledger") && a.status == http.StatusOK {
					t.Errorf("a call ran whose approval may be from before it ran: %s", a.body)
				} else if a.status == http.StatusOK {
					confirmed++
				}
				if strings.Contains(file, "callyard_intents") || strings.Contains(file, "callyard_results") {
					up.waitBatch(t, k.open.ID, startWithin)
					if r := up.results(t, k.open.ID, ""); len(r) != 1 || r[0].State != "unknown" {
						t.Errorf("a call from before the loss ended as %+v", r)
					}
				}
				k.told(t, up, file)
				up.stop(t)
				if once, _ := countEffects(t, k.effects); once > keptCalls+keptLines+1+min(confirmed, 1) {
					t.Errorf("%d effects", once)
				}
				for effect, n := range readEffects(t, k.effects) {
					if n > 1 && effect != "held" { // each copy of the folder may confirm it once
						t.Errorf("%s ran %d times", effect, n)
					}
				}
			})
		}
	}
	if !slices.ContainsFunc(blocks, func(f string) bool { return strings.Contains(f, "callyard_keys") }) {
		t.Error("the keys have no block")
	}
}
