package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	"github.com/callyard/callyard/pkg/schema"
)

// TestIdsOfAnotherTenantAreAnsweredLikeUnknownOnes sends every operation of the document that takes
// the ID of a call or a batch.
func TestIdsOfAnotherTenantAreAnsweredLikeUnknownOnes(t *testing.T) {
	annKey, annHash := authn.Generate()
	bobKey, bobHash := authn.Generate()
	keys, err := authn.NewKeys([]authn.Key{{Name: "ann", Hash: annHash, Tenant: "red"}, {Name: "bob", Hash: bobHash, Tenant: "blue"}})
	if err != nil {
		t.Fatal(err)
	}
	f := openFabric(t, func(o *Options) { o.Keys = callers.New(callers.Options{Keys: keys}) })
	as := func(key, method, path, body string, header ...string) answer {
		kind := "application/json"
		if strings.HasPrefix(path, "/batches/") && strings.HasSuffix(path, "/calls") {
			kind = "application/x-ndjson"
		}
		return f.do(method, path, body, append(header, "Authorization", "Bearer "+key, "Content-Type", kind)...)
	}
	var b batches.Batch
	if a := as(annKey, "POST", "/batches", `{"calls":[{"server":"demo","tool":"echo"}]}`); json.Unmarshal(a.body, &b) != nil || a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	single := as(annKey, "POST", "/servers/demo/tools/echo", `{}`, "Prefer", "respond-async")
	call := strings.TrimPrefix(single.header.Get("Location"), "/calls/")
	if single.status != http.StatusAccepted || call == "" {
		t.Fatalf("%d %s", single.status, single.body)
	}
	// The IDs of a batch and of a line that never existed, in the same format.
	ids := map[string][2]string{
		"/calls/":   {call, strings.Replace(call, call[5:31], "06b2t8m3c0w3v2q5n7k9a1d4fz", 1)},
		"/batches/": {string(b.ID), "batch_06b2t8m3c0w3v2q5n7k9a1d4fz"},
	}
	bodies := map[string]string{"/calls/{id}/settle": `{"as":"done","reason":"it is"}`, "/calls/{id}/input": `{"inputResponses":{}}`}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(f.do("GET", "/openapi.json", "").body, &doc); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for prefix, pair := range ids {
		if a := as(annKey, "GET", prefix+pair[0], ""); a.status != http.StatusOK {
			t.Errorf("her own %s: %d %s", pair[0], a.status, a.body)
		}
		for path, operations := range doc.Paths {
			if !strings.HasPrefix(path, prefix+"{id}") {
				continue
			}
			for operation := range operations {
				method := strings.ToUpper(operation)
				body := bodies[path]
				if body == "" && method != "GET" && method != "DELETE" {
					body = "{}"
				}
				var got [2]string
				for i, id := range pair {
					a := as(bobKey, method, strings.ReplaceAll(path, "{id}", id), body)
					text, _, _ := strings.Cut(string(a.body), `"request_id"`)
					got[i] = strings.ReplaceAll(text, id, "ID")
					if a.status != http.StatusNotFound {
						t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
					}
				}
				if got[0] != got[1] {
					t.Errorf("%s %s: another tenant's is answered with\n%s\nan unknown one with\n%s", method, path, got[0], got[1])
				}
				asked++
			}
		}
	}
	if asked < 8 {
		t.Errorf("only %d operations were asked", asked)
	}
	for _, list := range []string{"/calls", "/batches"} {
		if a := as(bobKey, "GET", list, ""); a.status != http.StatusOK || strings.Contains(string(a.body), string(b.ID)) || strings.Contains(string(a.body), call) {
			t.Errorf("%s: %d %s", list, a.status, a.body)
		}
	}
}

func TestOnlyTheDefaultTenantChangesSharedSettings(t *testing.T) {
	redKey, redHash := authn.Generate()
	homeKey, homeHash := authn.Generate()
	keys, err := authn.NewKeys([]authn.Key{{Name: "ann", Hash: redHash, Tenant: "red"}, {Name: "bob", Hash: homeHash}})
	if err != nil {
		t.Fatal(err)
	}
	f := openFabric(t, func(o *Options) { o.Keys = callers.New(callers.Options{Keys: keys}) })
	for _, c := range []struct {
		method, path, body string
		own                bool // the caller belongs to the tenant and may do it
	}{
		{"PATCH", "/tools", `{}`, false}, {"PUT", "/sets/x", `{}`, true}, {"POST", "/servers/demo/restart", `{}`, false},
		{"GET", "/keys", "", true}, {"GET", "/tools", "", true},
	} {
		for key, allowed := range map[string]bool{redKey: c.own, homeKey: true} {
			a := f.do(c.method, c.path, c.body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
			if got := !strings.Contains(string(a.body), "Only credentials of the default tenant"); got != allowed || !got && a.status != http.StatusForbidden {
				t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
			}
		}
	}
}

// TestPrincipalsOfOneNameInTwoTenantsShareNoBatches bypasses authentication, which gives most
// credentials a name that is unique among tenants.
func TestPrincipalsOfOneNameInTwoTenantsShareNoBatches(t *testing.T) {
	f := openFabric(t, nil)
	made := map[schema.BatchID]bool{}
	for _, tenant := range []schema.TenantID{"", "red", "blue"} {
		who := schema.Principal{Name: "ann", Tenant: tenant}
		m, replayed, err := f.api.o.Batches.Create(t.Context(), batch.Order{Principal: who, Key: "nightly", Fingerprint: "same", Calls: 1})
		if err != nil || replayed || made[m.ID] {
			t.Fatalf("the key of %q is that of another tenant: %t, %v", tenant, replayed, err)
		}
		made[m.ID] = true
		if page, _, err := f.api.o.Batches.List(who, nil, 10, ""); err != nil || len(page) != 1 || page[0].ID != m.ID {
			t.Errorf("the list of %q has %d batches", tenant, len(page))
		}
		for id := range made {
			if _, err := f.api.o.Batches.Get(t.Context(), id, who); (err == nil) != (id == m.ID) {
				t.Errorf("%q asks for %s: %v", tenant, id, err)
			}
		}
	}
}
