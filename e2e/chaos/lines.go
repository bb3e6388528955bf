package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

const (
	ndjson = "Content-Type: application/x-ndjson"
	// pieceLines is the number of lines that a client sends in one request.
	pieceLines = 50
	// lineWithin limits the time that a client waits for a line of results before it asks
	// another front door.
	lineWithin = 5 * time.Second
	// stuckAfter is the time after which the refusal of one request is unexpected.
	stuckAfter = 30 * time.Second
)

// lines is a batch from the view of its client.
type lines struct {
	r       *run
	c       *client
	name    string
	id      string
	calls   []*clientCall
	before  int // lines of earlier batches
	ms      int
	effects string
}

// batches runs the batches of the load, one after the other.
func (r *run) batches(ctx context.Context) {
	c := newClient(r.f, r.c.Clients)
	defer c.close()
	for left, n := r.c.BatchCalls, 1; left > 0 && ctx.Err() == nil; n++ {
		size := min(left, r.c.BatchSize)
		b := &lines{r: r, c: c, name: fmt.Sprintf("b%d", n), before: r.c.BatchCalls - left, ms: r.c.ToolMS / 4, effects: r.effects}
		left -= size
		if !b.create(ctx) {
			return
		}
		read := make(chan struct{})
		arrived := make(chan *clientCall, size)
		go func() {
			defer close(read)
			b.results(ctx, size, arrived)
		}()
		if b.send(ctx, size, arrived) {
			b.seal(ctx)
		}
		close(arrived)
		<-read
	}
}

// persist repeats a request until the response has the status. It returns false if the
// load ends. known accepts further responses as final.
func (b *lines) persist(ctx context.Context, status int, known func(answer) bool, method, path, body string, headers ...string) (answer, bool) {
	began, told := time.Now(), false
	for {
		a, err := b.c.send(ctx, method, path, body, headers...)
		pause := errorPause
		if err == nil && !told && time.Since(began) > stuckAfter {
			told = true
			b.r.book.unexpected(fmt.Sprintf("%s %s: refused for %s: %d %s", method, strings.Replace(path, b.id, "{id}", 1), stuckAfter, a.status, a.problem().Detail))
		}
		if err == nil {
			if a.status == status || known != nil && known(a) {
				return a, true
			}
			if a.status != http.StatusServiceUnavailable && a.status != http.StatusTooManyRequests && a.status != http.StatusConflict {
				b.r.book.unexpected(method + " " + strings.Replace(path, b.id, "{id}", 1) + ": " + a.String())
			}
			pause = a.retryAfter()
		}
		if !rest(ctx, pause) {
			return answer{}, false
		}
	}
}

// create creates the batch.
func (b *lines) create(ctx context.Context) bool {
	b.id = "?"
	a, ok := b.persist(ctx, http.StatusCreated, nil, http.MethodPost, "/batches", `{"open":true}`, fmt.Sprintf("Idempotency-Key: %d-%s", b.r.c.Seed, b.name))
	if !ok {
		return false
	}
	var s struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(a.body, &s); err != nil || s.ID == "" {
		b.r.book.find("batch %s was made with the answer %.300s", b.name, a.body)
		return false
	}
	b.id = s.ID
	return true
}

// send sends the lines, a piece at a time. After an error it asks for the
// number of stored lines, and continues after them.
func (b *lines) send(ctx context.Context, size int, arrived chan<- *clientCall) bool {
	for from := 0; from < size; {
		n := min(pieceLines, size-from)
		if from+n > len(b.calls) {
			fresh := n - (len(b.calls) - from)
			if arrived != nil && !b.turn(ctx, fresh) {
				return false
			}
			var added []*clientCall
			for range fresh {
				t := &clientCall{Effect: fmt.Sprintf("%s-%d", b.name, len(b.calls)), Batch: b.name, Extra: arrived == nil}
				b.calls = append(b.calls, t)
				added = append(added, t)
			}
			b.r.book.sent(added)
			for _, t := range added {
				if arrived != nil {
					arrived <- t
				}
			}
		}
		a, err := b.c.send(ctx, http.MethodPost, fmt.Sprintf("/batches/%s/calls?from=%d", b.id, from), b.text(from, n), ndjson)
		if err == nil && a.status == http.StatusOK {
			from += n
			continue
		}
		if err == nil && a.status != http.StatusConflict && a.status != http.StatusServiceUnavailable {
			b.r.book.unexpected("POST /batches/{id}/calls: " + a.String())
		}
		stored, ok := b.stored(ctx)
		if !ok {
			return false
		}
		if stored < from || stored > from+n {
			if stored > from+n {
				b.r.book.find("batch %s has %d lines after %d were sent", b.name, stored, from+n)
				return false
			}
			// A front door that does not know the last piece yet: ask it again.
			if !rest(ctx, errorPause) {
				return false
			}
			continue
		}
		from = stored
	}
	return true
}

// turn waits until n more lines may be sent. Batches progress in step with the single calls,
// so that faults hit both from the beginning to the end.
func (b *lines) turn(ctx context.Context, n int) bool {
	for float64(b.before+len(b.calls))/float64(b.r.c.BatchCalls) > b.r.gate.share() {
		if !rest(ctx, errorPause) {
			return false
		}
	}
	return b.r.gate.pass(ctx, n)
}

// stored returns the number of stored lines.
func (b *lines) stored(ctx context.Context) (int, bool) {
	if !rest(ctx, errorPause) {
		return 0, false
	}
	// The response to a request with a wrong number contains the current number, while
	// the number of GET may be slightly outdated.
	a, ok := b.persist(ctx, http.StatusOK, nil, http.MethodGet, "/batches/"+b.id, "")
	var s struct {
		Calls int `json:"calls"`
	}
	if !ok || json.Unmarshal(a.body, &s) != nil {
		return 0, false
	}
	return s.Calls, true
}

func (b *lines) text(from, n int) string {
	var text strings.Builder
	for i := from; i < from+n; i++ {
		random := rand.New(rand.NewPCG(b.r.c.Seed+uint64(len(b.name)), uint64(i)))
		fmt.Fprintf(&text, `{"custom_id":%q,"server":%q,"tool":"effect","timeout_ms":%d,"arguments":{"path":%q,"id":%q,"ms":%d}}`+"\n",
			b.calls[i].Effect, onceServer, toolTimeout, b.effects, b.calls[i].Effect, random.IntN(b.ms+1))
	}
	return text.String()
}

// seal seals the batch.
func (b *lines) seal(ctx context.Context) {
	b.persist(ctx, http.StatusOK, nil, http.MethodPost, "/batches/"+b.id+"/seal", "")
}

// results reads results until there is one for each line. Each connection starts at the
// cursor of the last line received.
func (b *lines) results(ctx context.Context, size int, arrived <-chan *clientCall) {
	known := map[string]*clientCall{}
	cursor, got := "", 0
	for got < size && ctx.Err() == nil {
		watch, cancel := context.WithCancel(ctx)
		idle := time.AfterFunc(lineWithin, cancel)
		resp, err := b.c.request(watch, http.MethodGet, "/batches/"+b.id+"/results?follow=true&cursor="+cursor, "")
		if err == nil && resp.StatusCode == http.StatusOK {
			from := bufio.NewScanner(resp.Body)
			for from.Scan() {
				idle.Reset(lineWithin)
				var l struct {
					CustomID string `json:"custom_id"`
					CallID   string `json:"call_id"`
					State    string `json:"state"`
					Cursor   string `json:"cursor"`
				}
				if json.Unmarshal(from.Bytes(), &l) != nil || l.Cursor == "" {
					break // truncated: it is sent again
				}
				cursor = l.Cursor
				for known[l.CustomID] == nil {
					t, ok := <-arrived
					if !ok {
						b.r.book.find("batch %s has a result for %q, which was not sent", b.name, l.CustomID)
						break
					}
					known[t.Effect] = t
				}
				if t := known[l.CustomID]; t != nil {
					if t.Results == 0 {
						got++
					}
					b.r.book.line(t, l.CallID, l.State)
				}
			}
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		idle.Stop()
		cancel()
		b.c.next.Add(1)
		if got < size && !rest(ctx, errorPause) {
			return
		}
	}
}

// canceledBatch runs a batch that is canceled when a part of it has run. No call may run
// after the end of the batch, and calls reported as canceled must not have run at all.
func (r *run) canceledBatch(ctx context.Context) {
	c := newClient(r.f, 0)
	defer c.close()
	b := &lines{r: r, c: c, name: "x", ms: max(r.c.ToolMS, 50), effects: r.effects + "-canceled"}
	if !b.create(ctx) || !b.send(ctx, r.c.CancelCalls, nil) {
		return
	}
	ran := func() int {
		found, err := mcptest.ReadEffects(b.effects)
		if err != nil {
			r.book.find("reading the effects of the canceled batch: %v", err)
		}
		return len(found)
	}
	for ran() < r.c.CancelCalls/10 {
		if !rest(ctx, errorPause) {
			return
		}
	}
	if _, ok := b.persist(ctx, http.StatusOK, nil, http.MethodPost, "/batches/"+b.id+"/cancel", ""); !ok {
		return
	}
	canceled := time.Now()
	rest(ctx, time.Second)
	after := ran()
	arrived := make(chan *clientCall, len(b.calls))
	for _, t := range b.calls {
		arrived <- t
	}
	close(arrived)
	b.results(ctx, r.c.CancelCalls, arrived)
	r.report.Cancel = &Canceled{Lines: r.c.CancelCalls, RanWithinASecond: after, ended: ran(), Took: time.Since(canceled)}
}
