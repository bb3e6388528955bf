package batch

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Status is what is known of a durable call.
type Status struct {
	CallID string
	Batch  string // "" for a single call
	Index  uint64
	State  schema.State
	Call   *journal.CallRecord
	// Result is set once the call has ended.
	Result *journal.ResultRecord
	// Question is what the server asks while the call is suspended, since Asked,
	// in its how many-th round. Head is the call that stands for this one now; see
	// [Runner.Answer].
	Question []byte
	Asked    time.Time
	Round    int
	Head     string
	head     *journal.CallRecord
	lost     bool // its record is
	// Principal is who asked.
	Principal schema.Principal
}

// Ended says that there is a result.
func (s *Status) Ended() bool { return s.Result != nil }

// Status returns what is known of a durable call of the principal's, waiting for
// its end until ctx ends or wait is over. KindNotFound is for what does not exist,
// is not kept any more, or is not the principal's.
func (r *Runner) Status(ctx context.Context, id string, who schema.Principal, wait time.Duration) (*Status, error) {
	s, err := r.standing(ctx, id, who, wait)
	if err != nil || s.Result == nil || !s.Result.Input {
		return s, err
	}
	return r.conversation(ctx, s, who, wait)
}

// standing is how one call of a conversation stands by itself.
func (r *Runner) standing(ctx context.Context, id string, who schema.Principal, wait time.Duration) (*Status, error) {
	s, err := r.find(ctx, id, who)
	if err != nil {
		return nil, err
	}
	if it := r.local(s); it != nil {
		if s.State = schema.StateQueued; it.begun.Load() {
			s.State = schema.StateRunning
		}
		if it.waits.Load() {
			s.State = schema.StateHeld
		}
		s.Result = over(ctx, it, wait)
		return s.say(), nil
	}
	if s.Result, err = r.o.Store.FindResult(ctx, journalOf(s), s.Index, journal.Cursor{}); err == nil || schema.KindOf(err) != schema.KindNotFound {
		return s.say(), err
	}
	if s.lost {
		s.Result = new(lostResult(id, s.Index))
		return s.say(), nil
	}
	if s.State = schema.StateQueued; r.isHeld(ctx, id) {
		s.State = schema.StateHeld
	}
	if wait <= 0 {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.Result, err = r.awaitResult(ctx, id)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil
	}
	return s.say(), err
}

func (s *Status) say() *Status {
	if s.Result != nil {
		s.State = StateOf(s.Result.Outcome)
	}
	return s
}

// StateOf returns the state of a call with the outcome.
func StateOf(o journal.Outcome) schema.State {
	if o == journal.Dead {
		return schema.StateFailed
	}
	return schema.State(o.String())
}

// ErrorOf returns why the durable call with the id did not succeed.
func ErrorOf(id string, r *journal.ResultRecord) *schema.Error {
	e := &schema.Error{}
	if json.Unmarshal(r.Error, e) != nil || e.Kind == "" {
		e = schema.Errorf(schema.KindInternal, "The call ended as %s, and its error cannot be read.", r.Outcome)
	}
	return e.WithCall(id)
}

func journalOf(s *Status) string {
	id, _, _ := ParseCallID(s.CallID)
	return id
}

// over waits for the end of a call that runs here.
func over(ctx context.Context, it *item, wait time.Duration) *journal.ResultRecord {
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-it.over:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	select {
	case <-it.over:
		return it.result
	default:
		return nil
	}
}

// find reads the call and checks that it is the principal's.
func (r *Runner) find(ctx context.Context, id string, who schema.Principal) (*Status, error) {
	none := schema.Errorf(schema.KindNotFound, "There is no call %q, or it is not kept any more.", id)
	journalID, index, ok := r.ids.Find(id, who.Name)
	if !ok && r.lostID(id) {
		return nil, journal.LostCall(id)
	}
	if !ok {
		return nil, none // nor is it said that there is one
	}
	m, err := r.o.Store.Get(ctx, journalID)
	if schema.KindOf(err) == schema.KindNotFound {
		if r.o.lostBefore(journalID) {
			return nil, journal.LostCall(id)
		}
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	s := &Status{CallID: id, Head: id, Index: index, Principal: m.Principal}
	if m.Kind == journal.Batch {
		s.Batch = m.ID
	}
	s.Call, err = r.findCall(ctx, m, index)
	_, lost := gapOf(err)
	switch {
	case lost && m.Kind == journal.Lane: // of whom it was is lost too
		return nil, journal.LostCall(id)
	case lost:
		s.lost = true
	case schema.KindOf(err) == schema.KindNotFound:
		if m.Kind == journal.Lane || !m.Purged {
			return nil, none
		}
	case err != nil:
		return nil, err
	case s.Call.Principal.Name != "":
		s.Principal = s.Call.Principal
	}
	if s.Principal.Name != who.Name {
		return nil, none
	}
	return s, nil
}

// findCall reads a call, which is lost where the journal knows of it and the log does not
// have it. Of a journal that was not sealed before a loss nobody knows how many there were.
func (r *Runner) findCall(ctx context.Context, m *journal.Manifest, index uint64) (*journal.CallRecord, error) {
	c, err := r.o.Store.FindCall(ctx, m.ID, index)
	counted := !r.o.lost(m) || !m.Sealed.IsZero() && m.Sealed.Before(r.o.LostBefore)
	if schema.KindOf(err) != schema.KindNotFound || m.Purged || counted && index >= m.Calls {
		return c, err
	}
	stored, again := r.o.Store.Accepted(ctx, m.ID)
	if again != nil {
		return nil, again
	}
	if stored > index {
		return nil, err // only a replica does not have it yet
	}
	return nil, &journal.GapError{Journal: m.ID, First: index, Next: index + 1}
}

// local returns the call where it is under way or held here.
func (r *Runner) local(s *Status) *item {
	j := r.job(journalOf(s))
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if it := j.here[s.Index]; it != nil {
		return it
	}
	return j.held[s.Index]
}

func (r *Runner) isHeld(ctx context.Context, id string) bool {
	a, _, err := r.o.Ledger.ByCall(ctx, id)
	return err == nil && !a.State.Ended()
}

// Batch returns the manifest of a batch of the principal's.
func (r *Runner) Batch(ctx context.Context, id string, who schema.Principal) (*journal.Manifest, error) {
	none := schema.Errorf(schema.KindNotFound, "There is no batch %q.", id)
	if !strings.HasPrefix(id, batchPrefix) || len(id) != len(batchPrefix)+26 || !plain(id[len(batchPrefix):]) {
		return nil, none
	}
	m, err := r.o.Store.Get(ctx, id)
	if schema.KindOf(err) == schema.KindNotFound && r.o.lostBefore(id) {
		return nil, journal.LostBatch()
	}
	if schema.KindOf(err) == schema.KindNotFound || err == nil && (m.Kind != journal.Batch || m.Principal.Name != who.Name) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	if m.State == journal.Receiving {
		m = m.Clone()
		if m.Calls, err = r.o.Store.Accepted(ctx, id); err != nil {
			return nil, err
		}
	}
	if j := r.job(id); j != nil && m.State != journal.Ended {
		m = m.Clone()
		m.Counts = j.o.Progress().Counts() // newer than what was written
	}
	return m, nil
}

// Batches returns a page of the principal's batches, the newest first.
func (r *Runner) Batches(who schema.Principal, states []journal.State, limit int, cursor string) ([]*journal.Manifest, string) {
	return r.o.Store.List(journal.Filter{Kind: journal.Batch, States: states, Principal: who.Name, Limit: limit}, cursor)
}

// Cancel lets nothing more of a batch start; what runs may finish. A batch that has
// ended stays as it is.
func (r *Runner) Cancel(ctx context.Context, id string, who schema.Principal) (*journal.Manifest, error) {
	return r.End(ctx, id, who, canceledByCaller)
}

// canceledByCaller is why a batch ends that was canceled.
const canceledByCaller = "its caller canceled it"

// End is Cancel with another reason, which the batch shows from then on.
func (r *Runner) End(ctx context.Context, id string, who schema.Principal, reason string) (*journal.Manifest, error) {
	if _, err := r.Batch(ctx, id, who); err != nil {
		return nil, err
	}
	m, err := r.o.Store.Change(ctx, id, func(m *journal.Manifest) error {
		if m.State != journal.Ended && m.State != journal.Canceling {
			m.State, m.Reason = journal.Canceling, reason
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.changed(m)
	return m, nil
}

// CallResult is [Runner.ResultBody] for the call with the id.
func (r *Runner) CallResult(ctx context.Context, id string, rec *journal.ResultRecord) ([]byte, error) {
	journalID, _, _ := ParseCallID(id)
	return r.ResultBody(ctx, journalID, rec)
}

// ResultBody returns the bytes that the tool answered, wherever they lie.
func (r *Runner) ResultBody(ctx context.Context, journalID string, rec *journal.ResultRecord) ([]byte, error) {
	if rec.BodyObject.Name != "" {
		if own, _, ok := ParseCallID(rec.CallID); ok {
			journalID = own // a conversation may have gone on in another journal
		}
	}
	return r.o.Store.ResultBody(ctx, journalID, rec)
}

// Results returns a page of the results of a batch; see [journal.Store.Results].
func (r *Runner) Results(ctx context.Context, id string, after journal.Cursor, most int) ([]journal.ResultRecord, journal.Cursor, error) {
	return r.o.Store.Results(ctx, id, after, most)
}

// Follow passes on the results of a batch as they come; see
// [journal.Store.Follow].
func (r *Runner) Follow(ctx context.Context, id string, after journal.Cursor, f func([]journal.ResultRecord, journal.Cursor) error) error {
	return r.o.Store.Follow(ctx, id, after, f)
}

// Changes returns a channel that gets a word after each change of a batch; words
// that nobody reads are dropped. stop ends it.
func (r *Runner) Changes(id string) (changed <-chan struct{}, stop func()) {
	words := make(chan struct{}, 1)
	return words, r.o.Store.WatchOne(id, func(*journal.Manifest) {
		select {
		case words <- struct{}{}:
		default:
		}
	})
}
