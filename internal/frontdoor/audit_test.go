package frontdoor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestOperatorsReadAndVerifyTheAuditRecord(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	red, hash := authn.Generate()
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{Keys: []authn.Key{{Name: "red", Hash: hash, Tenant: "red"}}}})
	weak := d.newKey(d.key, `{"name":"weak","scopes":["tools:read"]}`)
	mine := d.newKey(red, `{"name":"red/ci","scopes":["tools:read"]}`)
	type list struct {
		Records []struct {
			Kind, By, Operation, Path, Tenant, Hash, Prev string
			Seq                                           int
		}
		Next string
	}
	read := func(key, query string) (l list) {
		t.Helper()
		status, _, answer := d.with(key, "GET", "/audit?"+query, "")
		if err := json.Unmarshal([]byte(answer), &l); err != nil || status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		return l
	}
	polltest.Within(t, 30*time.Second, "the records of both keys", func() bool { return len(read(d.key, "operation=create-key&kind=act-ended").Records) == 2 })
	newest := read(d.key, "operation=create-key&kind=act-ended").Records
	if newest[0].Path != "/keys/"+mine.ID || newest[0].By != "red" || newest[0].Tenant != "red" || newest[1].Path != "/keys/"+weak.ID || newest[0].Seq <= newest[1].Seq || newest[0].Hash == "" || newest[0].Prev == "" {
		t.Errorf("%+v", newest)
	}
	page := read(d.key, "limit=1")
	if next := read(d.key, "limit=1&cursor="+page.Next); page.Next == "" || len(next.Records) != 1 || next.Records[0].Seq == page.Records[0].Seq {
		t.Errorf("%+v then %+v", page, next)
	}
	// A tenant gets only its own records, whatever it requests.
	for _, query := range []string{"", "tenant=red"} {
		if own := read(red, query).Records; len(own) != 2 || own[0].By != "red" || own[1].By != "red" {
			t.Errorf("%q: %+v", query, own)
		}
	}
	if other := read(red, "tenant=default"); len(other.Records) != 0 || other.Next != "" {
		t.Errorf("%+v", other)
	}
	for _, c := range []struct {
		key, path string
		status    int
	}{{weak.Secret, "/audit", 403}, {weak.Secret, "/audit/verification", 403}, {red, "/audit/verification", 403}, {d.key, "/audit?kind=nothing", 400}, {d.key, "/audit?cursor=x", 400}, {d.key, "/audit?since=soon", 400}} {
		if status, _, answer := d.with(c.key, "GET", c.path, ""); status != c.status {
			t.Errorf("%s: %d %s", c.path, status, answer)
		}
	}
	polltest.Within(t, 30*time.Second, "all is verified", func() bool {
		status, _, answer := d.with(d.key, "GET", "/audit/verification", "")
		if status != 200 || !strings.Contains(answer, `"intact":true`) {
			t.Fatalf("%d %s", status, answer)
		}
		return strings.Contains(answer, `"complete":true`) && strings.Contains(answer, `"heads_compared":true`) && !strings.Contains(answer, `"records":0`)
	})
}
