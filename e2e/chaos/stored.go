package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// stored is a stored call, as returned by the API of the fleet.
type stored struct {
	id     string
	states []string // in the order in which they were stored; empty before its end
}

func (s stored) state() string {
	if len(s.states) == 0 {
		return ""
	}
	return s.states[len(s.states)-1]
}

// kept is the set of stored calls of a fleet.
type kept struct {
	calls map[string][]stored // by effect
	// open maps batches to the number of stored calls without a result.
	open map[string]int
}

// waiting returns the number of calls without a result.
func (k kept) waiting() (n int) {
	for _, rows := range k.calls {
		for _, s := range rows {
			if len(s.states) == 0 {
				n++
			}
		}
	}
	for _, open := range k.open {
		n += open
	}
	return n
}

const (
	// twinsWithin limits the time in which calls that no client knows must end. Their request
	// was repeated at another front door, and the front door that stored it, or another
	// one when its lease has ended, has to detect that.
	twinsWithin = time.Minute
	// readWithin limits the time to read the stored calls. After a cluster has recovered, some
	// streams have no leader for a while. Each call to read adds readEach.
	readWithin = 3 * time.Minute
	readEach   = 50 * time.Millisecond
	// readers is the number of concurrent reads.
	readers = 16
	// missingTries is the number of times that a call may be missing before it counts as not
	// stored, and refusedTries the number of times that a request may return another status before
	// that is an error.
	missingTries = 4
	refusedTries = 20
)

// digestOf returns the digest of arguments as in the call records.
func digestOf(arguments string) string {
	sum := sha256.Sum256([]byte(arguments))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// settled reads the stored calls when every call has a result or the time limit has passed.
// While it waits, it reads only the calls whose outcome no client knows. Then it
// restarts the front doors, so that no answer comes from their memory,
// and reads all calls.
func (r *run) settled(ctx context.Context) (kept, error) {
	for began := time.Now(); !r.c.wants(); {
		now, err := r.keep(ctx, func(t *clientCall) bool { return t.State == "" })
		if err != nil {
			return kept{}, err
		}
		open := now.waiting()
		if open == 0 {
			break
		}
		if time.Since(began) > twinsWithin {
			r.book.find("%d stored calls did not end within %s after the load", open, twinsWithin)
			break
		}
		r.c.Log.Info("waiting for calls that no client waits for", "campaign", r.c.Name, "calls", open)
		if !rest(ctx, time.Second) {
			return kept{}, ctx.Err()
		}
	}
	start, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	err := all(r.f.doors, func(s *slot) error {
		s.end(endWithin)
		return s.start(start)
	})
	if err != nil {
		return kept{}, fmt.Errorf("starting the front doors again: %w", err)
	}
	return r.keep(ctx, func(*clientCall) bool { return true })
}

// keep reads the stored durable calls: the single calls that which selects, the calls
// whose ID no client knows, and the batches.
func (r *run) keep(ctx context.Context, which func(*clientCall) bool) (kept, error) {
	began := time.Now()
	calls := r.book.all()
	ctx, cancel := context.WithTimeout(ctx, readWithin+time.Duration(len(calls))*readEach)
	defer cancel()
	k := &keeper{c: newClient(r.f, 0), kept: kept{map[string][]stored{}, map[string]int{}}}
	defer k.c.close()
	told, byDigest := map[string]string{}, map[string]string{} // effects
	for _, t := range calls {
		if t.Batch != "" {
			continue
		}
		byDigest[t.digest] = t.Effect
		if t.ID != "" {
			told[t.ID] = t.Effect
		}
	}
	named, err := k.twins(ctx, told, byDigest)
	if err == nil && named == 0 && len(told) > 0 && !r.c.wants() {
		err = fmt.Errorf("it names none of %d calls, so it would name no twin either", len(told))
	}
	if err != nil {
		return kept{}, fmt.Errorf("reading the call records: %w", err)
	}
	for _, t := range calls {
		if t.Batch == "" && !which(t) {
			delete(told, t.ID)
		}
	}
	if err := k.singles(ctx, told); err != nil {
		return kept{}, fmt.Errorf("reading single calls: %w", err)
	}
	if err := k.batches(ctx); err != nil {
		return kept{}, fmt.Errorf("reading batches: %w", err)
	}
	r.c.Log.Info("read what is stored", "campaign", r.c.Name, "calls", len(k.kept.calls), "took", time.Since(began).Round(time.Millisecond))
	return k.kept, nil
}

// keeper collects the stored calls.
type keeper struct {
	c *client

	mu   sync.Mutex
	kept kept
}

// get decodes the response to a request into v. found is false for 404. It repeats a request
// that was refused or had no response.
func (k *keeper) get(ctx context.Context, path string, v any) (found bool, err error) {
	missing := 0
	for refused := 0; ; {
		a, err := k.c.send(ctx, http.MethodGet, path, "")
		switch {
		case err != nil || a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests:
		case a.status == http.StatusOK:
			if lines, ok := v.(*[]byte); ok {
				*lines = a.body
				return true, nil
			}
			return true, json.Unmarshal(a.body, v)
		case a.status == http.StatusNotFound:
			if missing++; missing == missingTries {
				return false, nil
			}
			k.c.next.Add(1)
		default:
			if refused++; refused == refusedTries {
				return false, fmt.Errorf("GET %s: %s", path, a)
			}
		}
		if !rest(ctx, max(a.retryAfter(), errorPause)) {
			return false, fmt.Errorf("GET %s: %w", path, ctx.Err())
		}
	}
}

// twins adds the single calls to told that the call records have but no client knows, because
// the response was lost. The log may lack a call, and includes refused
// calls, which are read like the others. named is the number of calls
// in the log whose IDs a client knows.
func (k *keeper) twins(ctx context.Context, told, byDigest map[string]string) (named int, err error) {
	for cursor := ""; ; {
		var page struct {
			Calls []struct {
				ID      string `json:"id"`
				Durable bool   `json:"durable"`
				Batch   string `json:"batch_id"`
				Digest  string `json:"arguments_digest"`
			} `json:"calls"`
			Next string `json:"next"`
		}
		if _, err := k.get(ctx, "/calls?tool=effect&limit=1000&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return named, err
		}
		for _, c := range page.Calls {
			effect := byDigest[c.Digest]
			if effect == "" || !c.Durable || c.Batch != "" {
				continue
			}
			if told[c.ID] != "" {
				named++
			}
			told[c.ID] = effect
		}
		if cursor = page.Next; cursor == "" {
			return named, nil
		}
	}
}

// singles reads each of the calls.
func (k *keeper) singles(ctx context.Context, effects map[string]string) error {
	ids, failed := make(chan string), make(chan error, readers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	for range readers {
		wait.Go(func() {
			for id := range ids {
				if err := k.single(ctx, id, effects[id]); err != nil {
					failed <- err
					cancel()
					return
				}
			}
		})
	}
	for id := range effects {
		select {
		case ids <- id:
		case <-ctx.Done():
		}
	}
	close(ids)
	wait.Wait()
	close(failed)
	return <-failed
}

// single reads one call.
func (k *keeper) single(ctx context.Context, id, effect string) error {
	var s struct {
		State string `json:"state"`
	}
	found, err := k.get(ctx, "/calls/"+id, &s)
	if err != nil || !found {
		return err
	}
	row := stored{id: id}
	if ended(s.State) {
		row.states = []string{s.State}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept.calls[effect] = append(k.kept.calls[effect], row)
	return nil
}

// batches reads the results of every batch.
func (k *keeper) batches(ctx context.Context) error {
	for cursor := ""; ; {
		var page struct {
			Batches []struct {
				ID string `json:"id"`
			} `json:"batches"`
			Next string `json:"next"`
		}
		if _, err := k.get(ctx, "/batches?limit=1000&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return err
		}
		for _, b := range page.Batches {
			if err := k.batch(ctx, b.ID); err != nil {
				return err
			}
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

// batch reads the results of one batch.
func (k *keeper) batch(ctx context.Context, id string) error {
	var b struct {
		Calls int `json:"calls"`
	}
	if _, err := k.get(ctx, "/batches/"+id, &b); err != nil {
		return err
	}
	type place struct{ effect, id string }
	var order []place
	states := map[place][]string{}
	for cursor := ""; ; {
		const lines = 1000
		var text []byte
		if _, err := k.get(ctx, fmt.Sprintf("/batches/%s/results?limit=%d&cursor=%s", id, lines, url.QueryEscape(cursor)), &text); err != nil {
			return err
		}
		n := 0
		for line := range bytes.Lines(text) {
			var l struct {
				CustomID string `json:"custom_id"`
				CallID   string `json:"call_id"`
				State    string `json:"state"`
				Cursor   string `json:"cursor"`
			}
			if err := json.Unmarshal(line, &l); err != nil || l.Cursor == "" {
				break // truncated: it is read again
			}
			p := place{l.CustomID, l.CallID}
			if states[p] == nil {
				order = append(order, p)
			}
			states[p] = append(states[p], l.State)
			cursor = l.Cursor
			n++
		}
		if n == 0 {
			break
		}
	}
	if open := b.Calls - len(order); open > 0 {
		k.kept.open[id] = open
	}
	for _, p := range order {
		k.kept.calls[p.effect] = append(k.kept.calls[p.effect], stored{p.id, states[p]})
	}
	return nil
}
