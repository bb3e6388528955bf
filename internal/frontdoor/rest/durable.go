package rest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
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

// runDurable stores the call, has it run, and answers as the caller wishes.
func (a *API) runDurable(x *exchange, r *http.Request, call *schema.Call, w wish) error {
	if a.o.Batches == nil {
		return schema.Errorf(schema.KindUnavailable, "Durable calls are not available here; send the call without Prefer, Idempotency-Key and callback.")
	}
	if w.callback != "" {
		if a.o.CheckCallback == nil {
			return schema.Errorf(schema.KindInvalidRequest, "Callbacks are not switched on here; the operator sets webhooks.secrets_file. Leave callback_url out and ask GET /calls/{id}.")
		}
		if err := a.o.CheckCallback(w.callback); err != nil {
			return err
		}
	}
	t, err := a.o.Batches.Submit(r.Context(), batch.Submission{
		Call: call, CallbackURL: w.callback, Key: w.key, Fingerprint: w.fingerprint, Waited: !w.async,
	})
	if err != nil {
		return err
	}
	x.set("Callyard-Call-Id", t.CallID)
	if t.Replayed {
		x.set("Idempotency-Replayed", "true")
	}
	if w.preference.durable() {
		applied := "respond-async"
		if w.waits {
			applied = "wait=" + strconv.Itoa(int(w.wait/time.Second))
		}
		x.set("Preference-Applied", applied)
	}
	if w.async && !w.waits {
		return a.accepted(x, r, t.CallID)
	}
	if t.Replayed {
		return a.replay(x, r, t.CallID, w.wait, w)
	}
	ctx := r.Context()
	if w.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(w.wait, maxWait))
		defer cancel()
	}
	rec, err := a.o.Batches.Wait(ctx, t)
	switch {
	case err == nil:
		return a.answerRecord(r.Context(), x, t.CallID, rec)
	case errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil:
		return a.accepted(x, r, t.CallID)
	case r.Context().Err() != nil:
		return schema.Errorf(schema.KindCanceled, "The caller left; the call goes on, and GET /calls/%s tells what came of it.", t.CallID).WithCall(t.CallID)
	}
	return schema.AsError(err).WithCall(t.CallID)
}

// maxWait bounds Prefer: wait; longer, connections are cut on the way.
const maxWait = 10 * time.Minute

// accepted answers that the call is stored and goes on without the caller.
func (a *API) accepted(x *exchange, r *http.Request, id string) error {
	body, err := a.callBody(r.Context(), id, x.principal, 0)
	if err != nil {
		return err
	}
	x.set("Location", "/calls/"+id)
	x.send(http.StatusAccepted, a.fixed.json, withOutcome(body, outcomeAccepted))
	return nil
}

// replay answers a request whose key stands for a call that was accepted before.
func (a *API) replay(x *exchange, r *http.Request, id string, wait time.Duration, w wish) error {
	running := schema.Errorf(schema.KindConflict, "The call of this Idempotency-Key is still under way; GET /calls/%s tells its state, and the same request gets its answer later.", id).WithCall(id)
	running.Retryable, running.RetryAfter = true, time.Second
	if _, _, ok := batch.ParseCallID(id); ok {
		s, err := a.o.Batches.Status(r.Context(), id, x.principal, min(wait, maxWait))
		if err != nil {
			return err
		}
		if s.Ended() {
			return a.answerRecord(r.Context(), x, id, s.Result)
		}
	} else if p, err := a.awaitEnd(r.Context(), id, x.principal, min(wait, maxWait)); err != nil {
		return err
	} else if p.State.Ended() {
		return a.answerApproval(r.Context(), x, p)
	}
	if w.preference.durable() {
		return a.accepted(x, r, id)
	}
	return running
}

// recordBody returns the result in the end of a durable call.
func (a *API) recordBody(ctx context.Context, id string, rec *journal.ResultRecord) ([]byte, error) {
	if rec.Outcome != journal.Succeeded || len(rec.Error) > 0 {
		return nil, recordError(id, rec)
	}
	journalID, _, _ := batch.ParseCallID(id)
	body, err := a.o.Batches.ResultBody(ctx, journalID, rec)
	if err != nil {
		return nil, schema.AsError(err).WithCall(id)
	}
	return body, nil
}

// answerRecord answers with the end of a durable call, as if it had just come.
func (a *API) answerRecord(ctx context.Context, x *exchange, id string, rec *journal.ResultRecord) error {
	body, err := a.recordBody(ctx, id, rec)
	if err != nil {
		return err
	}
	if rec.Worker != "" {
		x.set("Callyard-Worker", rec.Worker)
	}
	a.sendResult(x, body)
	return nil
}

// recordError is why a durable call did not succeed.
func recordError(id string, rec *journal.ResultRecord) error {
	e := &schema.Error{}
	if json.Unmarshal(rec.Error, e) != nil || e.Kind == "" {
		e = schema.Errorf(schema.KindInternal, "The call ended as %s, and its error cannot be read.", rec.Outcome)
	}
	return e.WithCall(id)
}

// approvalBody returns the result of a call that was held and has ended.
func (a *API) approvalBody(ctx context.Context, p *ledger.Approval) ([]byte, error) {
	switch {
	case p.State == ledger.Succeeded:
		return a.o.Ledger.Result(ctx, p.ID)
	case p.Error != nil:
		return nil, p.Error.WithCall(p.CallID)
	case p.State == ledger.Expired:
		return nil, schema.Errorf(schema.KindExpired, "The call was not confirmed in time; it did not run.").WithCall(p.CallID)
	}
	return nil, schema.Errorf(schema.KindForbidden, "The call was %s; it did not run.", p.State).WithCall(p.CallID)
}

// answerApproval answers with the end of a call that was held.
func (a *API) answerApproval(ctx context.Context, x *exchange, p *ledger.Approval) error {
	body, err := a.approvalBody(ctx, p)
	if err != nil {
		return err
	}
	a.sendResult(x, body)
	return nil
}

// heldOr answers a hold, or returns err. A call that has its yes already, by a
// standing permission, is run.
func (a *API) heldOr(x *exchange, r *http.Request, w wish, err error) error {
	var held *admission.HeldError
	if !errors.As(err, &held) {
		return err
	}
	if !held.Run {
		a.held(x, held)
		return nil
	}
	id := held.Approval.CallID
	x.set("Callyard-Call-Id", id)
	ctx := r.Context()
	if w.async && !w.waits {
		gone, leave := context.WithCancel(ctx)
		leave() // the call goes on without its caller
		ctx = gone
	}
	res, err := a.release(ctx, x, held.Approval)
	switch {
	case err == nil:
		if res.Worker != "" {
			x.set("Callyard-Worker", res.Worker)
		}
		a.sendResult(x, res.Body)
		return nil
	case w.async && r.Context().Err() == nil && ctx.Err() != nil:
		return a.accepted(x, r, id)
	}
	return schema.AsError(err).WithCall(id)
}
