package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// carry runs the whole load and returns when it has ended.
func (r *run) carry(ctx context.Context) {
	var wait sync.WaitGroup
	singles := int64(r.c.Calls - r.c.BatchCalls)
	var n atomic.Int64
	for i := range r.c.Clients {
		wait.Go(func() {
			c := newClient(r.f, i)
			defer c.close()
			for {
				k := n.Add(1)
				if k > singles || !r.gate.pass(ctx, 1) {
					return
				}
				r.single(ctx, c, k)
			}
		})
	}
	if r.c.BatchCalls > 0 {
		wait.Go(func() { r.batches(ctx) })
	}
	if r.c.CancelCalls > 0 {
		wait.Go(func() { r.canceledBatch(ctx) })
	}
	wait.Wait()
}

// toolTimeout is the timeout of a run in milliseconds. A client asks for a call whose
// answer was lost when this time has passed.
const toolTimeout = 5000

// single runs one call with a key, and repeats the request until the outcome of
// the call is known.
func (r *run) single(ctx context.Context, c *client, k int64) {
	random := rand.New(rand.NewPCG(r.c.Seed, uint64(k)))
	t := &clientCall{Effect: fmt.Sprintf("s%d", k), Safe: random.IntN(10) == 0}
	server, file := onceServer, r.effects
	if t.Safe {
		server, file = safeServer, r.safeEffects
	}
	body := fmt.Sprintf(`{"path":%q,"id":%q,"ms":%d}`, file, t.Effect, random.IntN(r.c.ToolMS+1))
	headers := []string{fmt.Sprintf("Idempotency-Key: %d-%s", r.c.Seed, t.Effect), "Callyard-Timeout-Ms: " + strconv.Itoa(toolTimeout)}
	async := random.IntN(3) == 0
	if async {
		headers = append(headers, "Prefer: respond-async")
	}
	if async && r.c.CancelShare > 0 && random.IntN(r.c.CancelShare) == 0 {
		t.cancelAfter = time.Duration(1+random.IntN(2*r.c.ToolMS+1)) * time.Millisecond
	}
	t.digest = digestOf(body)
	path := "/servers/" + server + "/tools/effect"
	began := r.book.begin(t)
	state := ""
	defer func() { r.book.over(t, state, began) }()
	for state == "" && !t.Lost {
		a, err := c.send(ctx, http.MethodPost, path, body, headers...)
		pause := errorPause
		if err == nil {
			if a.status == http.StatusOK && !strings.Contains(string(a.body), `"done `+t.Effect+`"`) {
				r.book.find("the call of %s was answered with %.300s", t.Effect, a.body)
			}
			state, pause = r.read(ctx, c, t, a)
		}
		if state == "" && !rest(ctx, pause) {
			return
		}
	}
}

// read returns the final state of the call from the response, or the time to wait before
// the request is repeated. A call is accepted if the response is a result, reports that the
// call is stored or in flight, or is that of an earlier request with its key. After any other
// response the request is repeated, as documented.
func (r *run) read(ctx context.Context, c *client, t *clientCall, a answer) (state string, pause time.Duration) {
	id := a.header.Get("Callyard-Call-Id")
	if id == "" {
		id = a.problem().CallID
	}
	replayed := a.header.Get("Idempotency-Replayed") == "true"
	underWay := a.status == http.StatusConflict && a.problem().Type != "/problems/idempotency-key-reused"
	stored := id != "" && (a.status == http.StatusOK || a.status == http.StatusAccepted || underWay || replayed)
	if stored {
		r.book.accepted(t, id)
	}
	switch a.status {
	case http.StatusOK:
		return "succeeded", 0
	case http.StatusAccepted:
		if t.cancelAfter > 0 && !t.Canceled {
			if !rest(ctx, t.cancelAfter) {
				return "", errorPause
			}
			r.cancel(ctx, c, t)
		}
		return r.follow(ctx, c, t), errorPause
	case http.StatusConflict: // it is in flight
		return "", a.retryAfter()
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if a.header.Get("Retry-After") == "" {
			r.book.unexpected(a.String() + " without Retry-After")
		}
	}
	if stored {
		if state := r.follow(ctx, c, t); state != "" {
			return state, 0
		}
	} else if a.status != http.StatusServiceUnavailable && a.status != http.StatusTooManyRequests && a.status != http.StatusGatewayTimeout {
		r.book.unexpected(a.String())
	}
	return "", a.retryAfter()
}

// cancel cancels a call once. It ignores the response, because the outcome of the call
// is read afterwards.
func (r *run) cancel(ctx context.Context, c *client, t *clientCall) {
	r.book.canceled(t)
	a, err := c.send(ctx, http.MethodPost, "/calls/"+t.ID+"/cancel", "")
	switch {
	case err != nil, a.status == http.StatusOK, a.status == http.StatusNotFound, a.status == http.StatusConflict, a.status == http.StatusServiceUnavailable:
	default:
		r.book.unexpected("POST /calls/{id}/cancel: " + a.String())
	}
}

// followTries is the number of times that an accepted call may be missing before it counts
// as lost.
const followTries = 20

// follow polls the state of a call until it has ended. It returns "" if the load ends or
// the call is lost.
func (r *run) follow(ctx context.Context, c *client, t *clientCall) string {
	for missing := 0; ; {
		a, err := c.send(ctx, http.MethodGet, "/calls/"+t.ID+"?wait=5", "")
		pause := errorPause
		if err == nil {
			var s struct {
				State string `json:"state"`
			}
			switch {
			case a.status == http.StatusOK && json.Unmarshal(a.body, &s) == nil:
				if ended(s.State) {
					return s.State
				}
				missing = 0
			case a.status == http.StatusNotFound:
				if missing++; missing == followTries {
					t.Lost = true
					return ""
				}
				pause = 250 * time.Millisecond
				c.next.Add(1)
			case a.status == http.StatusServiceUnavailable:
				pause = a.retryAfter()
			default:
				r.book.unexpected("GET /calls: " + a.String())
			}
		}
		if !rest(ctx, pause) {
			return ""
		}
	}
}
