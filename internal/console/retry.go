package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"golang.org/x/sync/errgroup"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxRetried limits the number of failed calls that one new batch retries.
	maxRetried = 500
	// readAtOnce is the number of calls that are read concurrently.
	readAtOnce = 8
)

// retryLine is a call of the new batch, with the original arguments. Numbers keep all digits.
type retryLine struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	CustomID  string          `json:"custom_id,omitempty"`
}

// retryFailed makes a batch of the failed calls of another batch, and shows it. It includes only
// calls in state failed, because others ran or may have run.
func (c callPages) retryFailed(w http.ResponseWriter, r *http.Request, v Visit, id string) error {
	ids, err := c.failedOf(r.Context(), v, id)
	if err != nil {
		return err
	}
	calls := make([]retryLine, len(ids))
	all, ctx := errgroup.WithContext(r.Context())
	all.SetLimit(readAtOnce)
	for i, call := range ids {
		all.Go(func() (err error) {
			calls[i], err = c.again(ctx, v, call)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"calls": calls, "labels": map[string]string{"retry_of": id}})
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The batch cannot be written: %w", err)
	}
	params := callyard.CreateBatchParams{IdempotencyKey: onceKey(r.PostForm.Get("once"), id)}
	made, err := get[callyard.Batch](r.Context(), c.Console, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return client.CreateBatchWithBody(ctx, &params, "application/json", bytes.NewReader(body))
	})
	if err != nil {
		return err
	}
	c.acted(v, "retry", "batch", id, "new", made.ID)
	http.Redirect(w, r, at(Root+"/batch", "id", made.ID, "done", v.done("retry")), http.StatusSeeOther)
	return nil
}

// failedOf returns the IDs of the first [maxRetried] calls of a batch in state failed.
func (c callPages) failedOf(ctx context.Context, v Visit, id string) (ids []string, err error) {
	a, err := c.ask(ctx, v, with2(api.GetBatchResults, id, nil))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(a.body) {
		var result callyard.BatchResult
		if json.Unmarshal(line, &result) == nil && string(result.State) == "failed" && len(ids) < maxRetried {
			ids = append(ids, result.CallID)
		}
	}
	if len(ids) == 0 {
		return nil, schema.Errorf(schema.KindConflict, "No call of the batch is in state failed, or its results are not stored any more.")
	}
	return ids, nil
}

// again returns the parameters of a call, to call it again.
func (c callPages) again(ctx context.Context, v Visit, id string) (of retryLine, err error) {
	include := callyard.GetCallParamsIncludeArguments
	a, err := c.ask(ctx, v, with2(api.GetCall, id, &callyard.GetCallParams{Include: &include}))
	if err != nil {
		return of, err
	}
	var call callyard.Call
	if err := json.Unmarshal(a.body, &call); err != nil {
		return of, schema.Errorf(schema.KindUnavailable, "The answer of the front door cannot be read: %w", err)
	}
	of = retryLine{Server: call.Server, Tool: call.Tool, Arguments: rawjson.Get(a.body, "arguments"), CustomID: text(call.CustomID)}
	if of.Arguments == nil {
		return of, schema.Errorf(schema.KindConflict, "The arguments of the call %q are not stored any more, so the failed calls cannot be retried.", id)
	}
	return of, nil
}
