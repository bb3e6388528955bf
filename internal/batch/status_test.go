package batch

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// storedCall appends a call of ann to a batch that no job runs.
func storedCall(t *testing.T, o *Options) (batch schema.BatchID, id schema.CallID) {
	t.Helper()
	m := &journal.Manifest{ID: newJournalID(journal.Batch), Kind: journal.Batch, Principal: ann, Expires: time.Now().Add(time.Hour)}
	if err := o.Store.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w, err := o.Store.Write(t.Context(), schema.DefaultTenant, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	first, err := w.Append(t.Context(), []journal.CallRecord{{Server: "demo", Tool: "echo", CustomID: "mine", Arguments: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return m.ID, testIDs.CallID(m.ID, first, ann.Name)
}

func TestACallIsFoundByItsPrincipalOnly(t *testing.T) {
	o, js, _, _ := working(t)
	f := &finder{o: o, ids: testIDs, jobs: js}
	batch, id := storedCall(t, o)
	s, err := f.standing(t.Context(), id, ann, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s.State != schema.StateQueued || s.Batch != batch || s.Call.CustomID != "mine" || s.Ended() {
		t.Errorf("it stands so: %+v", s)
	}
	for what, c := range map[string]struct {
		id  schema.CallID
		who schema.Principal
	}{
		"somebody else":        {id, ben},
		"another tenant's ann": {id, schema.Principal{Name: ann.Name, Tenant: "other"}},
		"an id made for ben":   {testIDs.CallID(batch, 0, ben.Name), ben},
		"a call that is not":   {testIDs.CallID(batch, 1, ann.Name), ann},
		"a batch that is not":  {testIDs.CallID(newJournalID(journal.Batch), 0, ann.Name), ann},
		"an id without places": {schema.NewCallID(), ann},
	} {
		if _, err := f.standing(t.Context(), c.id, c.who, 0); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWaiterGetsTheResultOfAnEndedCall(t *testing.T) {
	o, js, _, _ := working(t)
	f := &finder{o: o, ids: testIDs, jobs: js}
	batch, id := storedCall(t, o)
	waited := make(chan *Status, 1)
	go func() {
		s, err := f.standing(t.Context(), id, ann, time.Minute)
		if err != nil {
			t.Error(err)
		}
		waited <- s
	}()
	owned, err := o.Store.Claim(t.Context(), schema.DefaultTenant, batch, "frontdoor-2")
	if err != nil {
		t.Fatal(err)
	}
	defer owned.Close()
	if err := owned.Results(t.Context(), journal.ResultRecord{Index: 0, CallID: id, Outcome: journal.Succeeded, Ended: time.Now(), Body: []byte(`{"content":[]}`)}); err != nil {
		t.Fatal(err)
	}
	s := <-waited
	if s == nil || s.State != schema.StateSucceeded || string(s.Result.Body) != `{"content":[]}` {
		t.Errorf("it ended so: %+v", s)
	}
}
