package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// batchCommand starts `callyard batch`.
func (d *door) batchCommand(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	return start(t, program{
		name: "callyard batch", path: filepath.Join(bin(t), "callyard"), args: append([]string{"batch"}, args...), dir: dir, env: []string{"CALLYARD_URL=" + d.url},
	})
}

// keptState is the part of the state file of `callyard batch` that the tests read.
type keptState struct {
	Batch string `json:"batch"`
	Lines int    `json:"lines"`
	Bytes int64  `json:"bytes"`
	Tally struct {
		Lines int `json:"lines"`
	} `json:"tally"`
}

func readState(results string) (s keptState, err error) {
	text, err := os.ReadFile(results + ".state")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// wantEachOnce checks that the results hold each of n calls once, in any
// order, and that each had its effect once.
func wantEachOnce(t testing.TB, results, effects string, n int) {
	t.Helper()
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, l := range readLines(t, bytes.NewReader(text)) {
		if seen[l.CustomID]++; l.State != "succeeded" || l.CustomID != fmt.Sprint("c", l.Index) {
			t.Errorf("line %d, %s, is %s: %s", l.Index, l.CustomID, l.State, l.Problem)
		}
	}
	for id, times := range seen {
		if times > 1 {
			t.Errorf("%s has %d results", id, times)
		}
	}
	if len(seen) != n {
		t.Errorf("%d calls have results, want %d", len(seen), n)
	}
	if once, twice := countEffects(t, effects); once != n || twice != 0 {
		t.Errorf("%d calls had an effect, %d of them twice; want %d", once, twice, n)
	}
}

func TestKilledBatchCommandResumes(t *testing.T) {
	const n, kills, seed = 20_000, 5, 4
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	dir := t.TempDir()
	calls, results, effects := filepath.Join(dir, "calls.ndjson"), filepath.Join(dir, "results.ndjson"), filepath.Join(dir, "effects")
	gate := filepath.Join(dir, "gate") // prevents the command from ending before it is killed
	write(t, calls, effectLines("books", effects, 0, n-1, 0)+heldLine("books", effects, gate, n-1))
	dice := rand.New(rand.NewPCG(seed, n))
	read := 0 // read by the run that was killed last
	for kill := range kills {
		p := d.batchCommand(t, dir, calls, "--out", results)
		// The first runs are killed while they send, the others while they read results.
		lines, done := 1+dice.IntN(n/2), 0
		if kill > 0 {
			lines, done = 0, min(n-1, read+1+dice.IntN((n-read)/(kills-kill+1)+1))
		}
		p.eventually(t, 2*time.Minute, fmt.Sprintf("having sent %d and read %d", lines, done), func() error {
			s, err := readState(results)
			if err == nil && (s.Lines < lines || s.Tally.Lines < done) {
				err = fmt.Errorf("it has sent %d and read %d", s.Lines, s.Tally.Lines)
			}
			return err
		})
		p.kill9(t)
		s, err := readState(results)
		if err != nil {
			t.Fatal(err)
		}
		read = s.Tally.Lines
		t.Logf("killed with %d of %d lines sent and %d results kept", s.Lines, n, s.Tally.Lines)
	}
	write(t, gate, "")
	p := d.batchCommand(t, dir, calls, "--out", results)
	if code := p.wait(t, 3*time.Minute); code != 0 {
		t.Errorf("it ends with %d: %s", code, p.out.String())
	}
	wantEachOnce(t, results, effects, n)
	// A further run does not create a second batch.
	p = d.batchCommand(t, dir, calls, "--out", results)
	if code := p.wait(t, time.Minute); code != 0 {
		t.Errorf("once more, it ends with %d: %s", code, p.out.String())
	}
	wantEachOnce(t, results, effects, n)
}

func TestInterruptedBatchCommandSaysHowToResume(t *testing.T) {
	const n = 3000
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	dir := t.TempDir()
	calls, effects := filepath.Join(dir, "calls.ndjson"), filepath.Join(dir, "effects")
	results := filepath.Join(dir, "calls.results.ndjson")
	gate := filepath.Join(dir, "gate")
	write(t, calls, effectLines("books", effects, 0, n-1, 5)+heldLine("books", effects, gate, n-1))
	p := d.batchCommand(t, dir, "calls.ndjson")
	p.eventually(t, time.Minute, "having read some results", func() error {
		s, err := readState(results)
		if err == nil && s.Tally.Lines == 0 {
			err = fmt.Errorf("it has none")
		}
		return err
	})
	p.signal(t, syscall.SIGINT)
	if code := p.wait(t, soon); code != 130 || !strings.Contains(p.out.String(), "Repeat the command ") {
		t.Errorf("interrupted, it ends with %d: %s", code, p.out.String())
	}
	write(t, gate, "")
	p = d.batchCommand(t, dir, "calls.ndjson")
	if code := p.wait(t, 2*time.Minute); code != 0 {
		t.Errorf("it ends with %d: %s", code, p.out.String())
	}
	wantEachOnce(t, results, effects, n)
}

func TestBatchCommandSurvivesKillOfFrontDoor(t *testing.T) {
	t.Parallel()
	const n = 4000
	s := setup{data: t.TempDir(), listen: porttest.Address(t), servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)}), env: []string{quickStop}}
	d := startUp(t, s)
	d.waitServers(t, 1, "books")
	dir := t.TempDir()
	calls, effects, results := filepath.Join(dir, "calls.ndjson"), filepath.Join(dir, "effects"), filepath.Join(dir, "calls.results.ndjson")
	write(t, calls, effectLines("books", effects, 0, n, 2))
	p := d.batchCommand(t, dir, calls)
	p.eventually(t, time.Minute, "having read some results", func() error {
		s, err := readState(results)
		if err == nil && s.Tally.Lines < n/10 {
			err = fmt.Errorf("it has %d", s.Tally.Lines)
		}
		return err
	})
	d.kill9(t)
	d = startUp(t, s)
	code := p.wait(t, 3*time.Minute)
	s2, err := readState(results)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	seen, unknown := map[int]bool{}, 0
	for _, l := range readLines(t, bytes.NewReader(text)) {
		if seen[l.Index] {
			t.Errorf("call %d has two results", l.Index)
		}
		if seen[l.Index] = true; l.State == "unknown" {
			unknown++
		}
	}
	t.Logf("%d of %d are unknown", unknown, n)
	if want := min(unknown, 1); code != want || len(seen) != n || s2.Bytes != int64(len(text)) {
		t.Errorf("it ends with %d, with %d results: %s", code, len(seen), p.out.String())
	}
	if _, twice := countEffects(t, effects); twice != 0 {
		t.Errorf("%d calls ran twice", twice)
	}
	if unknown == 0 {
		return
	}
	if !strings.Contains(p.out.String(), "callyard calls settle") {
		t.Errorf("it does not say what to do about the unknown ones: %s", p.out.String())
	}
	for _, l := range readLines(t, bytes.NewReader(text)) {
		if l.State != "unknown" {
			continue
		}
		env := []string{"CALLYARD_URL=" + d.url}
		if code, _, said := command(t, env, "calls", "settle", l.CallID, "--as", "done"); code != 2 || !strings.Contains(said, "--reason") {
			t.Errorf("settling without a reason ends with %d: %s", code, said)
		}
		if code, out, said := command(t, env, "calls", "settle", l.CallID, "--as", "done", "--reason", "it is in the books"); code != 0 || !strings.Contains(out, "succeeded (settled by ") {
			t.Errorf("settling ends with %d: %s%s", code, out, said)
		}
		if code, _, said := command(t, env, "calls", "retry", l.CallID); code != 3 {
			t.Errorf("running again what is settled ends with %d: %s", code, said)
		}
		return
	}
}
