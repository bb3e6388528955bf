package frontdoor_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// TestSealedOrCanceledBatchReportsCurrentCounts uses an open batch of which two calls have ended and one is running.
func TestSealedOrCanceledBatchReportsCurrentCounts(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{})
	says := func(status int, _ http.Header, answer string) func(state string) bool {
		t.Helper()
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		return func(state string) bool {
			return strings.Contains(answer, `"state":"`+state+`","`) && strings.Contains(answer, `"calls":3,"counts":{"waiting":1,"held":0,"succeeded":2,`)
		}
	}
	for act, state := range map[string]string{"/seal": "running", "/cancel": "canceling"} {
		status, header, answer := d.do("POST", "/batches?open=true", batchOf(2, "read", true)+`{"server":"s","tool":"slow"}`+"\n")
		if status != http.StatusCreated {
			t.Fatalf("%d %s", status, answer)
		}
		path := header.Get("Location")
		polltest.Until(t, "the batch is open", func() bool { return says(d.do("GET", path, ""))("receiving") })
		if !says(d.do("POST", path+act, ""))(state) {
			t.Errorf("the answer to %s has other numbers", act)
		}
		if !says(d.do("GET", path, ""))(state) {
			t.Errorf("after %s the batch has other numbers", act)
		}
	}
}

func TestBatchListRefusesForeignCursors(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	d := openDoor(t, srv, frontdoor.Options{})
	var made, seen []string
	for range 3 {
		status, header, answer := d.do("POST", "/batches", batchOf(1, "read", true))
		if status != http.StatusCreated {
			t.Fatalf("%d %s", status, answer)
		}
		made = append(made, strings.TrimPrefix(header.Get("Location"), "/batches/"))
	}
	for _, cursor := range []string{"zz", "1", "1p-1", "20261127023725.445802817", "2026112702372x.445802817batch_06b2t8m3c0w3v2q5n7k9a1d4fz"} {
		if status, _, answer := d.do("GET", "/batches?cursor="+cursor, ""); status != http.StatusBadRequest || !strings.Contains(answer, "cursor is invalid") {
			t.Errorf("%q: %d %s", cursor, status, answer)
		}
	}
	for cursor := ""; len(seen) < len(made); {
		status, _, answer := d.do("GET", "/batches?limit=1&cursor="+url.QueryEscape(cursor), "")
		var page struct {
			Batches []struct{ ID string }
			Next    string
		}
		if err := json.Unmarshal([]byte(answer), &page); err != nil || status != http.StatusOK || len(page.Batches) != 1 {
			t.Fatalf("%d %s, %v", status, answer, err)
		}
		seen, cursor = append(seen, page.Batches[0].ID), page.Next
	}
	if slices.Reverse(seen); !slices.Equal(seen, made) {
		t.Errorf("%v, not %v", seen, made)
	}
}
