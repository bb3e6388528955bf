package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	"github.com/callyard/callyard/pkg/schema"
)

// askers opens a fabric with two keys, and returns functions that send requests with them.
func askers(t testing.TB) (f *fabric, ann, bob func(method, path, body string, headers ...string) answer) {
	t.Helper()
	var texts [2]string
	var list []authn.Key
	for i, name := range []string{"ann", "bob"} {
		text, hash := authn.Generate()
		texts[i] = text
		list = append(list, authn.Key{Name: name, Hash: hash})
	}
	keys, err := authn.NewKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	f = openFabric(t, func(o *Options) { o.Keys = callers.New(callers.Options{Keys: keys}) })
	as := func(key string) func(method, path, body string, headers ...string) answer {
		return func(method, path, body string, headers ...string) answer {
			return f.do(method, path, body, append(headers, "Authorization", "Bearer "+key, "Content-Type", "application/json")...)
		}
	}
	return f, as(texts[0]), as(texts[1])
}

func TestForeignDurableCallIsAnsweredLikeUnknownWithoutRead(t *testing.T) {
	f, ann, bob := askers(t)
	single := func(as func(method, path, body string, headers ...string) answer) schema.CallID {
		t.Helper()
		a := as("POST", "/servers/demo/tools/echo", `{}`, "Prefer", "respond-async")
		id := schema.CallID(strings.TrimPrefix(a.header.Get("Location"), "/calls/"))
		if a.status != http.StatusAccepted || id == "" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return id
	}
	hers, his := single(ann), single(bob)
	var b batches.Batch
	if a := ann("POST", "/batches", `{"calls":[{"server":"demo","tool":"echo"}]}`); json.Unmarshal(a.body, &b) != nil || a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := ann("GET", "/calls/"+string(hers), ""); a.status != http.StatusOK {
		t.Fatalf("her own call: %d %s", a.status, a.body)
	}
	line := f.api.o.Batches.CallID(b.ID, 0, "ann")
	if a := ann("GET", "/calls/"+string(line), ""); a.status != http.StatusOK {
		t.Fatalf("a line of her batch: %d %s", a.status, a.body)
	}
	for _, end := range []answer{ann("GET", "/calls/"+string(hers)+"?wait=20", ""), bob("GET", "/calls/"+string(his)+"?wait=20", ""), ann("GET", "/calls/"+string(line)+"?wait=20", "")} {
		if !strings.Contains(string(end.body), `"state":"succeeded"`) { // it is stored before NATS stops
			t.Fatalf("%d %s", end.status, end.body)
		}
	}
	if hers[:31] != his[:31] {
		t.Fatalf("%s and %s are not of one lane", hers, his)
	}
	none := func(id schema.CallID) schema.CallID {
		return schema.CallID(strings.Replace(string(id), string(id[5:31]), string(schema.NewCallID()[5:]), 1))
	}
	ids := map[string]schema.CallID{
		"hers":                        hers,
		"a line of hers":              line,
		"counted up from his":         schema.CallID(strings.Replace(string(his), "-s1-", "-s0-", 1)),
		"counted up, and never taken": schema.CallID(strings.Replace(string(his), "-s1-", "-s9-", 1)),
		"of no journal":               none(his),
		"a line of no journal":        none(line),
	}
	// Without NATS, only requests that do not need it are answered.
	f.NATS.Stop()
	defer f.NATS.Again(t)
	for _, ask := range []func(id string) answer{
		func(id string) answer { return bob("GET", "/calls/"+id, "") },
		func(id string) answer { return bob("GET", "/calls/"+id+"?wait=5", "") },
		func(id string) answer { return bob("POST", "/calls/"+id+"/cancel", "") },
		func(id string) answer { return bob("POST", "/calls/"+id+"/settle", `{"as":"done","reason":"it is"}`) },
		func(id string) answer {
			return bob("POST", "/confirmations", `{"confirm":true,"calls":["`+id+`"]}`)
		},
	} {
		want := ""
		for what, id := range ids {
			a := ask(string(id))
			got := strings.ReplaceAll(string(a.body), string(id), "ID")
			if i := strings.Index(got, `"request_id"`); i >= 0 {
				got = got[:i]
			}
			if want == "" {
				want = got
			}
			if a.status != http.StatusNotFound && !strings.Contains(got, `"status":404`) || got != want {
				t.Errorf("%s: %d %s; another one has %s", what, a.status, got, want)
			}
		}
	}
}
