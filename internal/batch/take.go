package batch

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// enlist notes that a call is under way here. False means that it must not be: it
// is held, has ended, or was taken back before it was read.
func (j *job) enlist(it *item) bool {
	index := it.rec.Index
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, taken := j.taking[index]; taken || j.held[index] != nil || j.o.Progress().Ended(index) {
		return false
	}
	j.here[index] = it
	return true
}

func (j *job) delist(it *item) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.here[it.rec.Index] == it {
		delete(j.here, it.rec.Index)
	}
}

// takeBack ends a call that has not left; one that was not read yet gets its end
// here. What has left is the router's to cancel, and what is held is the desk's.
func (j *job) takeBack(index uint64) {
	j.mu.Lock()
	it, held := j.here[index], j.held[index]
	_, twice := j.taking[index]
	_, left := j.o.Progress().Open()[index] // under an earlier owner
	unread := it == nil && held == nil && !twice && !left && !j.direct && !j.o.Progress().Ended(index)
	if unread {
		j.taking[index] = struct{}{}
	}
	j.mu.Unlock()
	if it != nil {
		it.takeBack()
	}
	if !unread {
		return
	}
	defer j.took(index)
	c, err := j.r.o.Store.FindCall(j.gone, j.o.ID(), index)
	if err != nil {
		j.r.o.Log.Warn("canceling a call of a batch", "journal", j.o.ID(), "index", index, "error", err)
		return // it runs when its turn has come
	}
	it = j.item(c, 0)
	j.store(it, j.record(it, nil, j.taken(it)))
}

// took says that the end of a call that was taken back is stored, or never will be.
func (j *job) took(index uint64) {
	j.mu.Lock()
	delete(j.taking, index)
	j.mu.Unlock()
	select {
	case j.parked <- struct{}{}:
	default:
	}
}

// takeBacks does what other front doors ask for: calls are canceled by their id,
// wherever they run.
func (r *Runner) takeBacks() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case id := <-r.takes:
			r.takeBack(id)
		}
	}
}

// canceled is told of the id of each call that is canceled, here or elsewhere.
func (r *Runner) canceled(id string) {
	journalID, _, ok := ParseCallID(id)
	if !ok || r.job(journalID) == nil {
		return
	}
	select {
	case r.takes <- id:
	default: // so many at once are not from people; who asked sees that the call goes on
	}
}

func (r *Runner) takeBack(id string) {
	journalID, index, ok := ParseCallID(id)
	if !ok {
		return
	}
	if j := r.job(journalID); j != nil {
		j.takeBack(index)
	}
}

// job returns the journal with the id where it runs here, or nil.
func (r *Runner) job(id string) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[id]
}

// CancelCall takes back a durable call that has not left, whether it waits for its
// turn, for its server, for its quota or for a yes; one that runs is asked to stop.
func (r *Runner) CancelCall(ctx context.Context, id string, who schema.Principal) (*Status, error) {
	s, err := r.Status(ctx, id, who, 0)
	if err != nil || s.Ended() {
		return s, err
	}
	switch s.State {
	case schema.StateHeld:
		if _, err := r.o.Desk.Cancel(ctx, s.Head, who); err != nil {
			return nil, err
		}
	case schema.StateSuspended:
		mine, err := r.withdraw(ctx, s, who)
		if err == nil && !mine {
			return r.CancelCall(ctx, id, who) // it was answered just now
		}
		if err != nil {
			return nil, err
		}
	default:
		r.takeBack(s.Head)
		if err := r.o.Router.Cancel(s.Head); err != nil {
			return nil, err
		}
	}
	return r.Status(ctx, id, who, cancelWait)
}

// cancelWait is how long a call that was canceled is given to end.
const cancelWait = 2 * time.Second
