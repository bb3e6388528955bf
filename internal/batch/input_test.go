package batch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// A record with some of the answers also contains the open input requests. No job runs the journal
// in this test, as if its front door were busy or had been killed.
func TestOpenInputRequestsAreReturnedBeforeTheirRecordRuns(t *testing.T) {
	ctx := t.Context()
	store, err := journal.Open(ctx, bustest.Start(t).Connect(t, "frontdoor"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	o := &Options{Store: store}
	f := &finder{o: o, ids: testIDs, jobs: newJobs(t.Context(), o, testIDs, new(sync.WaitGroup))}
	m := &journal.Manifest{ID: newJournalID(journal.Lane), Kind: journal.Lane, Principal: schema.Principal{Name: "frontdoor-1"}, Expires: time.Now().Add(time.Hour)}
	if err := store.Create(ctx, m); err != nil {
		t.Fatal(err)
	}
	w, err := store.Write(ctx, schema.DefaultTenant, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	answered := time.Now().UTC().Truncate(time.Millisecond)
	left := `{"resultType":"input_required","inputRequests":{"b":{"method":"roots/list"}}}`
	first, err := w.Append(ctx, []journal.CallRecord{{
		Server: "demo", Tool: "ask", Principal: ann, Accepted: answered, Method: methodAnswers,
		Arguments: []byte(left), Extra: []byte(`{"inputResponses":{"a":{}}}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.standing(context.WithoutCancel(ctx), testIDs.CallID(m.ID, first, ann.Name), ann, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s.Result == nil || !s.Result.Input || !s.Result.Ended.Equal(answered) {
		t.Fatalf("the record does not ask: %+v", s)
	}
	if body, err := resultBody(ctx, store, schema.DefaultTenant, m.ID, s.Result); err != nil || !slices.Equal(body, []byte(left)) {
		t.Errorf("it asks %s, %v; want %s", body, err, left)
	}
}
