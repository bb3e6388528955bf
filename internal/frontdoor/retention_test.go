package frontdoor_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// payer is a tenant whose calls have payloads that consist of "secret-", their kind and the tenant's
// name.
type payer struct {
	name, key                                       string
	batch, batchCall, durable, failed, held, denied string // IDs
}

// post sends a request of the tenant with an idempotency key, and returns the status and the answer.
func (d *door) post(p *payer, path, idempotency, body string) (int, http.Header, string) {
	d.t.Helper()
	return d.with(p.key, "POST", path, body, "Prefer", "respond-async", "Idempotency-Key", idempotency)
}

// read waits for the end of a call of the tenant, and returns the status and the answer.
func (d *door) read(p *payer, call string) (int, string) {
	d.t.Helper()
	status, _, answer := d.with(p.key, "GET", "/calls/"+call+"?wait=20", "")
	return status, answer
}

// secret returns the argument of a call: a secret of the kind, padded with size spaces.
func (p *payer) secret(kind string, size int) string {
	return fmt.Sprintf(`{"v":"secret-%s-%s"%s}`, kind, p.name, strings.Repeat(" ", size))
}

// spend runs one call of each kind to its end.
func (p *payer) spend(d *door) {
	d.t.Helper()
	status, h, answer := d.post(p, "/batches", "b", fmt.Sprintf(`{"calls":[{"server":"s","tool":"read","arguments":%s},{"server":"s","tool":"read","arguments":%s}]}`, p.secret("batch", 0), p.secret("large", 300<<10)))
	p.batch = strings.TrimPrefix(h.Get("Location"), "/batches/")
	if status != http.StatusCreated {
		d.t.Fatalf("%d %s", status, answer)
	}
	lines := p.results(d, "?follow=true")
	for _, kind := range []string{"batch", "large"} {
		if !strings.Contains(lines, "secret-"+kind+"-"+p.name) {
			d.t.Fatalf("results: %s", lines)
		}
	}
	var line struct {
		CallID string `json:"call_id"`
	}
	first, _, _ := strings.Cut(lines, "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil {
		d.t.Fatal(err)
	}
	p.batchCall = line.CallID
	for kind, id := range map[string]*string{"durable": &p.durable, "error": &p.failed} {
		status, h, answer := d.post(p, "/servers/s/tools/read", kind, p.secret(kind, 0))
		if *id = strings.TrimPrefix(h.Get("Location"), "/calls/"); status != http.StatusAccepted {
			d.t.Fatalf("%d %s", status, answer)
		}
		if _, answer = d.read(p, *id); !strings.Contains(answer, "secret-"+kind+"-"+p.name) {
			d.t.Fatalf("%s", answer)
		}
	}
	for kind, id := range map[string]*string{"held": &p.held, "denied": &p.denied} {
		status, _, answer := d.post(p, "/servers/s/tools/write", kind, p.secret(kind, 0))
		var told struct {
			CallID         string `json:"call_id"`
			ConfirmationID string `json:"confirmation_id"`
		}
		if err := json.Unmarshal([]byte(answer), &told); err != nil || status != http.StatusAccepted {
			d.t.Fatalf("%d %s", status, answer)
		}
		*id = told.CallID
		if status, _, answer := d.with(p.key, "POST", "/confirmations/"+told.ConfirmationID, fmt.Sprintf(`{"confirm":%t}`, kind == "held")); status/100 != 2 {
			d.t.Fatalf("%d %s", status, answer)
		}
		if _, answer = d.read(p, *id); !strings.Contains(answer, map[string]string{"held": "secret-held-" + p.name, "denied": `"denied"`}[kind]) {
			d.t.Fatalf("%s", answer)
		}
	}
}

func (p *payer) results(d *door, query string) string {
	d.t.Helper()
	status, _, lines := d.with(p.key, "GET", "/batches/"+p.batch+"/results"+query, "")
	if status != http.StatusOK {
		d.t.Fatalf("%d %s", status, lines)
	}
	return lines
}

// stored returns the kinds of payloads of the tenant that a stream contains.
func (p *payer) stored(t *testing.T, srv *bustest.Server) (kinds []string) {
	t.Helper()
	for _, kind := range []string{"batch", "large", "durable", "error", "held", "denied", "slow"} {
		found := bustest.StreamsWith(t, srv.URL, "secret-"+kind+"-"+p.name)
		if found = slices.DeleteFunc(found, func(s string) bool { return s == bus.StreamExecutions }); len(found) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func TestPayloadsAreDeletedAfterTheTenantsRetention(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	t.Cleanup(h.let)
	o := frontdoor.Options{
		Tenants: tenants.New(settings.Tenants{"red": {Servers: []string{"*"}, Retention: time.Hour}, "blue": {Servers: []string{"*"}}}),
		Policy:  policyOf(t, "rules:\n  - {name: ask, match: {tool: write}, level: 2, approval: {by: caller, expires: 1h}}\n  - {name: run, match: {tool: slow}, level: 1}\n"),
	}
	payers := map[string]*payer{}
	for _, name := range []string{"red", "blue"} {
		key, hash := authn.Generate()
		payers[name] = &payer{name: name, key: key}
		o.Config.Keys = append(o.Config.Keys, authn.Key{Name: "bot-" + name, Hash: hash, Tenant: schema.TenantID(name)})
	}
	red, blue := payers["red"], payers["blue"]
	t.Run("calls end", func(t *testing.T) { // and so do the lanes of their front door
		d := openDoor(t, srv, o)
		red.spend(d)
		blue.spend(d)
	})
	d := openDoor(t, srv, o)
	status, header, answer := d.post(red, "/batches", "slow", fmt.Sprintf(`{"calls":[{"server":"s","tool":"slow","arguments":%s},{"server":"s","tool":"read","arguments":%s}]}`, red.secret("slow", 0), red.secret("slow", 0)))
	runs := strings.TrimPrefix(header.Get("Location"), "/batches/")
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	polltest.Within(t, 30*time.Second, "the result of one of two calls", func() bool {
		_, _, lines := d.with(red.key, "GET", "/batches/"+runs+"/results", "")
		return strings.Contains(lines, "secret-slow-red")
	})
	polltest.Until(t, "the other call runs", func() bool { return h.now.Load() == 1 })
	ran := h.runs.Load()
	all := []string{"batch", "large", "durable", "error", "held", "denied"}
	d.in.Forget(t.Context(), time.Now().Add(59*time.Minute))
	if got := red.stored(t, srv); !slices.Equal(got, append(slices.Clone(all), "slow")) {
		t.Fatalf("before the retention has ended, stored are %v", got)
	}
	// This front door may have to finish a lane of one that stopped.
	polltest.Within(t, 30*time.Second, "all but the batch that runs is forgotten", func() bool {
		d.in.Forget(t.Context(), time.Now().Add(time.Hour+time.Minute))
		return slices.Equal(red.stored(t, srv), []string{"slow"})
	})
	if got := blue.stored(t, srv); !slices.Equal(got, all) {
		t.Errorf("of blue are stored %v", got)
	}
	red.isForgotten(d)
	blue.isKept(d)
	if got := h.runs.Load(); got != ran {
		t.Errorf("%d calls ran again", got-ran)
	}
	found, err := journal.Check(t.Context(), srv.Connect(t, "check"), time.Time{}, slog.New(slog.DiscardHandler))
	if err != nil || len(found.Faults) > 0 || len(found.Keys) > 0 {
		t.Errorf("the check finds %+v, %v", found, err)
	}
	h.let()
	if status, _, lines := d.with(red.key, "GET", "/batches/"+runs+"/results?follow=true", ""); status != http.StatusOK || strings.Count(lines, "secret-slow-red") != 2 {
		t.Errorf("the batch that ran: %d %s", status, lines)
	}
}

// isForgotten reads everything, and sends each request again with its key.
func (p *payer) isForgotten(d *door) {
	d.t.Helper()
	var told []string
	say := func(what string, want int, wants string) func(status int, _ http.Header, answer string) {
		return func(status int, _ http.Header, answer string) {
			d.t.Helper()
			if told = append(told, answer); status != want || !strings.Contains(answer, wants) {
				d.t.Errorf("%s: %d %s, want %d with %q", what, status, answer, want, wants)
			}
		}
	}
	get := func(path string) (int, http.Header, string) { return d.with(p.key, "GET", path, "") }
	say("the batch", 200, `"succeeded":2`)(get("/batches/" + p.batch))
	say("its results", 200, "")(get("/batches/" + p.batch + "/results"))
	if got := p.results(d, ""); got != "" {
		d.t.Errorf("results: %s", got)
	}
	if got := p.results(d, "?follow=true"); got != "" {
		d.t.Errorf("results: %s", got)
	}
	const over = "because the retention of its tenant has ended"
	say("the batch again", 201, `"succeeded":2`)(d.post(p, "/batches", "b", fmt.Sprintf(`{"calls":[{"server":"s","tool":"read","arguments":%s},{"server":"s","tool":"read","arguments":%s}]}`, p.secret("batch", 0), p.secret("large", 300<<10))))
	for what, id := range map[string]string{"a call of the batch": p.batchCall, "a durable call": p.durable, "one that failed": p.failed} {
		say(what, 404, over)(get("/calls/" + id))
		say(what+", waited for", 404, over)(get("/calls/" + id + "?wait=5"))
		say(what+", settled", 404, over)(d.with(p.key, "POST", "/calls/"+id+"/settle", `{"as":"done","reason":"it is"}`))
	}
	for _, kind := range []string{"durable", "error"} {
		say(kind+" again", 404, over)(d.post(p, "/servers/s/tools/read", kind, p.secret(kind, 0)))
	}
	for kind, id := range map[string]string{"held": p.held, "denied": p.denied} {
		say("a call that was "+kind, 200, map[string]string{"held": `"succeeded"`, "denied": `"denied"`}[kind])(get("/calls/" + id))
		say(kind+" again", 202, id)(d.post(p, "/servers/s/tools/write", kind, p.secret(kind, 0)))
	}
	say("the batches", 200, p.batch)(get("/batches"))
	say("the batch, as it is told", 200, `"payloads_deleted":true`)(get("/batches/" + p.batch))
	say("the tenant", 200, `"retention_seconds":3600`)(get("/tenants/" + p.name))
	for _, answer := range told {
		if strings.Contains(answer, "secret-") {
			d.t.Errorf("an answer has a payload: %s", answer)
		}
	}
}

// isKept does the same for a tenant whose data is kept.
func (p *payer) isKept(d *door) {
	d.t.Helper()
	if got := p.results(d, ""); strings.Count(got, "secret-") != 2 {
		d.t.Errorf("results: %s", got)
	}
	for kind, id := range map[string]string{"batch": p.batchCall, "durable": p.durable, "error": p.failed, "held": p.held} {
		if status, answer := d.read(p, id); status != http.StatusOK || !strings.Contains(answer, "secret-"+kind+"-"+p.name) {
			d.t.Errorf("%s: %d %s", kind, status, answer)
		}
	}
	if status, _, answer := d.post(p, "/servers/s/tools/read", "durable", p.secret("durable", 0)); status != http.StatusAccepted || !strings.Contains(answer, "secret-durable-"+p.name) {
		d.t.Errorf("a durable call again: %d %s", status, answer)
	}
}
