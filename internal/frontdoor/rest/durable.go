package rest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// headerCallback names the address that is told of the end of a call, for calls
// whose body is the arguments.
const headerCallback = "Callyard-Callback-Url"

// wish is how a caller wants a call kept.
type wish struct {
	preference
	key, fingerprint string
	callback         string
}

// durable says that the call must be stored before it runs.
func (w *wish) durable() bool { return w.preference.durable() || w.key != "" || w.callback != "" }

// wishOf reads the headers that make a call durable; most calls have none. body is
// what the key's fingerprint is taken of.
func (a *API) wishOf(r *http.Request, body []byte) (w wish, err error) {
	if headers := r.Header["Prefer"]; len(headers) > 0 {
		w.preference = preferred(headers)
	}
	if w.key, err = idempotencyKey(r); err != nil {
		return w, err
	}
	if headers := r.Header[headerCallback]; len(headers) > 0 {
		w.callback = headers[0]
	}
	if w.key != "" {
		w.fingerprint = fingerprint(r, body)
	}
	return w, nil
}

// atOnce says that the caller does not wait for the end.
func (w *wish) atOnce() bool { return w.async && !w.waits }

// fingerprint is a digest of what a request asks for.
func fingerprint(r *http.Request, body []byte) string {
	sum := sha256.New()
	for _, part := range []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get(headerCallback)} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil))
}

// acceptedOr answers for a call that was stored: with its end, or with its status where
// the caller does not wait so long.
func (a *API) acceptedOr(ctx context.Context, x *exchange, r *http.Request, c *calls.Accepted, w wish) error {
	x.set("Callyard-Call-Id", c.CallID)
	if c.Replayed {
		x.set("Idempotency-Replayed", "true")
	}
	if w.preference.durable() {
		applied := "respond-async"
		if w.waits {
			applied = "wait=" + strconv.Itoa(int(w.wait/time.Second))
		}
		x.set("Preference-Applied", applied)
	}
	if w.atOnce() {
		return a.accepted(x, r, c.CallID)
	}
	var s *calls.Status
	var err error
	if c.Replayed {
		s, err = a.o.Calls.Wait(ctx, c.CallID, x.principal, min(w.wait, maxWait))
	} else {
		if w.waits {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, min(w.wait, maxWait))
			defer cancel()
		}
		s, err = a.o.Calls.Await(ctx, c, x.principal)
	}
	switch {
	case r.Context().Err() != nil && (err != nil || !s.State.Ended()):
		return schema.Errorf(schema.KindCanceled, "The caller left; the call goes on, and GET /calls/%s tells what came of it.", c.CallID).WithCall(c.CallID)
	case errors.Is(err, context.DeadlineExceeded):
		return a.accepted(x, r, c.CallID)
	case err != nil:
		return schema.AsError(err).WithCall(c.CallID)
	case !s.State.Ended() && w.preference.durable():
		return a.accepted(x, r, c.CallID)
	}
	res, err := a.o.Calls.Result(r.Context(), s)
	if err != nil {
		return err
	}
	a.answer(x, res)
	return nil
}

// maxWait bounds Prefer: wait; longer, connections are cut on the way.
const maxWait = 10 * time.Minute

// accepted answers that the call is stored and goes on without the caller.
func (a *API) accepted(x *exchange, r *http.Request, id string) error {
	s, err := a.o.Calls.Get(r.Context(), id, x.principal)
	if err != nil {
		return err
	}
	body, err := a.callBody(r.Context(), s)
	if err != nil {
		return err
	}
	x.set("Location", "/calls/"+id)
	x.send(http.StatusAccepted, a.fixed.json, withOutcome(body, outcomeAccepted))
	return nil
}
