package frontdoor_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// stateChanges is the answer to an import.
type stateChanges struct {
	DryRun  bool `json:"dry_run"`
	Changes []struct {
		Part, Name, Action, Note, Error string
		Done                            bool
	}
	Failed int
	ETag   string
}

// told returns the changes, one per line.
func (c *stateChanges) told() string {
	var b strings.Builder
	for _, one := range c.Changes {
		b.WriteString(one.Part + " " + one.Name + " " + one.Action)
		if one.Done {
			b.WriteString(" done")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (d *door) importState(file, query string, status int, header ...string) (c stateChanges) {
	d.t.Helper()
	got, _, answer := d.with(d.key, "PUT", "/state"+query, file, header...)
	if err := json.Unmarshal([]byte(answer), &c); err != nil || got != status {
		d.t.Fatalf("%d %s", got, answer)
	}
	return c
}

func TestStateExportAndImportRoundTrip(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{})
	do := func(method, path, body string, want int) {
		t.Helper()
		if status, _, answer := d.with(d.key, method, path, body); status != want {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
	}
	_, _, before := d.with(d.key, "GET", "/state", "")
	do("PUT", "/sets/inner", `{"include":[{"server":"s","tool":"read"}]}`, 200)
	do("PUT", "/sets/outer", `{"include":[{"set":"inner"}]}`, 200)
	do("PATCH", "/tools", `{"set":"outer","enabled":false,"reason":"closed"}`, 200)
	do("PATCH", "/servers/s/tools/write", `{"enabled":false,"reason":"no"}`, 200)
	k := d.newKey(d.key, `{"name":"nightly","scopes":["tools:read"]}`)
	status, h, file := d.with(d.key, "GET", "/state", "")
	if status != 200 || h.Get("Etag") == "" || strings.Contains(file, k.Secret) || strings.Contains(file, `"hash"`) || !strings.Contains(file, `"nightly"`) || !strings.Contains(file, `"format":"callyard-state/1"`) {
		t.Fatalf("%d %v %s", status, h, file)
	}
	if c := d.importState(file, "?dry_run=true", 200); len(c.Changes) != 0 || c.ETag != h.Get("Etag") || !c.DryRun {
		t.Errorf("the state itself: %+v", c)
	}
	// Importing a file of a state without sets and switches removes those created since.
	if undo := d.importState(before, "?dry_run=true", 200); undo.told() != "sets inner remove\nsets outer remove\nswitches */* in set outer remove\nswitches s/write remove\nkeys nightly differs\n" {
		t.Errorf("the file of before would change\n%s", undo.told())
	}
	// Everything is removed and restored from the file. Dependencies are created first.
	do("PATCH", "/tools", `{"set":"outer","enabled":true}`, 200)
	do("PATCH", "/servers/s/tools/write", `{"enabled":true}`, 200)
	for _, set := range []string{"outer", "inner"} {
		if status, _, answer := d.with(d.key, "DELETE", "/sets/"+set, "", "If-Match", "*"); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	do("PUT", "/sets/extra", `{"include":[{"server":"s"}]}`, 200)
	if status, _, answer := d.with(d.key, "DELETE", "/keys/"+k.ID, "", "If-Match", "*"); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	const want = "sets extra remove\nsets inner add\nsets outer add\nswitches */* in set outer add\nswitches s/write add\nkeys nightly differs\n"
	dry := d.importState(file, "?dry_run=true", 200)
	if dry.told() != want {
		t.Errorf("it would change\n%s", dry.told())
	}
	do("GET", "/sets/inner", "", 404)
	if status, _, answer := d.with(d.key, "PUT", "/state", file); status != http.StatusPreconditionRequired {
		t.Errorf("without a state: %d %s", status, answer)
	}
	if status, _, answer := d.with(d.key, "PUT", "/state", file, "If-Match", h.Get("Etag")); status != http.StatusPreconditionFailed {
		t.Errorf("of another state: %d %s", status, answer)
	}
	done := d.importState(file, "", 200, "If-Match", dry.ETag)
	if done.told() != strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(want, "add\n", "add done\n"), "remove\n", "remove done\n"), "x", "x") || done.Failed != 0 {
		t.Errorf("it changed\n%s%+v", done.told(), done)
	}
	if again := d.importState(file, "?dry_run=true", 200); again.told() != "keys nightly differs\n" || again.ETag != done.ETag {
		t.Errorf("then it would change\n%s", again.told())
	}
	do("GET", "/sets/extra", "", 404)
	if status, _, answer := d.with(d.key, "GET", "/tools/switches", ""); status != 200 || !strings.Contains(answer, "closed") {
		t.Errorf("%d %s", status, answer)
	}
	for bad, status := range map[string]int{
		`{}`: 400, `{"format":"x"}`: 400, `{"format":"callyard-state/1","more":1}`: 400, `{"format":"callyard-state/1","sets":[{"name":"x"}]}`: 400,
		`{"format":"callyard-state/1","switches":[{"wide":true}]}`: 400, `{"format":"callyard-state/1","switches":[{"server":"s"}]}`: 400, `[]`: 400,
	} {
		if got, _, answer := d.with(d.key, "PUT", "/state?dry_run=true", bad); got != status {
			t.Errorf("%s: %d %s", bad, got, answer)
		}
	}
	// A change that cannot be made is reported. A missing part is unchanged.
	part := d.importState(`{"format":"callyard-state/1","switches":[{"server":"s","tool":"nothing"},{"set":"outer","wide":true,"reason":"closed"}]}`, "", 200, "If-Match", "*")
	if part.Failed != 1 || part.told() != "switches s/nothing add\nswitches s/write remove done\n" || part.Changes[0].Error == "" {
		t.Errorf("%s%+v", part.told(), part)
	}
	do("GET", "/sets/inner", "", 200)
}

// Two operators import different files at two front doors at the same time, both with the ETag
// that they have seen. Each change requires the compared revision: if both create the same set with
// different content, one succeeds, and the answer to the other reports the change as failed.
func TestConcurrentImportsReportFailedChanges(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	doors := []*door{openDoor(t, srv, frontdoor.Options{}), openDoor(t, srv, frontdoor.Options{})}
	for round := range 5 {
		name := fmt.Sprintf("set-%d", round)
		answers := make([]stateChanges, 2)
		statuses := make([]int, 2)
		tags := make([]string, 2)
		for i, d := range doors {
			_, h, _ := d.with(d.key, "GET", "/state", "")
			tags[i] = h.Get("Etag")
		}
		var both sync.WaitGroup
		for i, d := range doors {
			both.Go(func() {
				file := fmt.Sprintf(`{"format":"callyard-state/1","sets":[{"name":%q,"description":"of %d","include":[{"server":"s"}]}]}`, name, i)
				var answer string
				statuses[i], _, answer = d.with(d.key, "PUT", "/state", file, "If-Match", tags[i])
				_ = json.Unmarshal([]byte(answer), &answers[i])
			})
		}
		both.Wait()
		done := 0
		for i, a := range answers {
			switch {
			case statuses[i] == http.StatusPreconditionFailed:
				continue // it compared after the other import
			case statuses[i] != http.StatusOK:
				t.Fatalf("round %d: %d %+v", round, statuses[i], a)
			}
			for _, one := range a.Changes {
				if one.Name != name {
					continue
				}
				if one.Done {
					done++
				}
				if one.Done != (one.Error == "") || !one.Done && a.Failed == 0 {
					t.Errorf("round %d: neither done nor told: %+v", round, a)
				}
			}
		}
		if done != 1 {
			t.Errorf("round %d: %d imports made the set: %+v", round, done, answers)
		}
	}
}

// A set of a tenant that is not in the section tenants is useless: credentials of that tenant are
// refused, and no list of tenants contains it. A front door without the section does not know the
// tenants, and imports such sets.
func TestAnImportSkipsSetsOfTenantsThatAreNotConfigured(t *testing.T) {
	const file = `{"format":"callyard-state/1","sets":[{"name":"ours","include":[{}]}],"tenant_sets":[{"tenant":"red","set":{"name":"own","include":[{}]}},{"tenant":"nobody","set":{"name":"own","include":[{}]}}]}`
	for section, want := range map[bool]string{
		true:  "sets ours add done\ntenant_sets nobody/own skip\ntenant_sets red/own add done\n",
		false: "sets ours add done\ntenant_sets nobody/own add done\ntenant_sets red/own add done\n",
	} {
		e := openTenantAdminFabric(t, section)
		dry := e.importState(file, "?dry_run=true", 200)
		if got := dry.told(); got != strings.ReplaceAll(want, " done", "") {
			t.Errorf("section %t: it would change\n%s", section, got)
		}
		if section && !strings.Contains(dry.Changes[1].Note, "section tenants") {
			t.Errorf("the note does not say what to do: %q", dry.Changes[1].Note)
		}
		if done := e.importState(file, "", 200, "If-Match", dry.ETag); done.told() != want || done.Failed != 0 {
			t.Errorf("section %t: it changed\n%s%+v", section, done.told(), done)
		}
		if got := e.must(200, e.key, "GET", "/state", ""); strings.Contains(got, `"tenant":"nobody"`) == section {
			t.Errorf("section %t: %s", section, got)
		}
	}
}

// The installation may make a set with the name that a tenant's set has already. The tenant keeps its
// own, also in an installation that is made from the exported state.
func TestAnImportRestoresTheSetOfATenantThatHasTheNameOfAnotherSet(t *testing.T) {
	const file = `{"format":"callyard-state/1","sets":[{"name":"one","include":[{}]}],"tenant_sets":[{"tenant":"red","set":{"name":"one","description":"of red","include":[{}]}}]}`
	e := openTenantAdminFabric(t, true)
	tag := e.importState(file, "?dry_run=true", 200).ETag
	if done := e.importState(file, "", 200, "If-Match", tag); done.Failed != 0 || done.told() != "sets one add done\ntenant_sets red/one add done\n" {
		t.Errorf("it changed\n%s%+v", done.told(), done)
	}
	if got := e.must(200, e.key, "GET", "/state", ""); !strings.Contains(got, `"of red"`) {
		t.Errorf("the state: %s", got)
	}
}

// The exported scopes of a key with a role are those of the role, as in GET /keys.
func TestAnExportHasTheScopesOfKeysWithARole(t *testing.T) {
	e := openTenantAdminFabric(t, true)
	made := e.newKey(e.key, `{"name":"red/reader","tenant":"red","role":"auditor"}`)
	type list struct {
		Keys []struct {
			ID     string
			Scopes []string
		}
	}
	var state, keys list
	for path, to := range map[string]*list{"/state": &state, "/keys": &keys} {
		if err := json.Unmarshal([]byte(e.must(200, e.key, "GET", path, "")), to); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(state), fmt.Sprint(keys); got != want || !strings.Contains(got, "{"+made.ID+" [tools:read calls:read:all]}") {
		t.Errorf("the state has the keys\n%s, not\n%s", got, want)
	}
}
