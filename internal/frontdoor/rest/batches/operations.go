package batches

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
)

// Names of schemas.
const (
	schemaBatchItem = "BatchCall"
	schemaBatchBody = "BatchRequest"
	schemaLine      = "BatchResult"
)

const exampleLine = `{"custom_id":"a","server":"everything","tool":"echo","arguments":{"message":"hello"}}` + "\n"

const exampleResultLine = `{"index":0,"custom_id":"a","call_id":"call_06b2t8m3c0w3v2q5n7k9a1d4fz-b0-3t9kq0vx7w2e","state":"succeeded","worker":"worker-1-7f3k2a","attempt":1,"cursor":"4.0","result":{"content":[{"type":"text","text":"Echo: hello"}]}}` + "\n"

func exampleBatch() map[string]any {
	return map[string]any{
		"id": "batch_06b2t8m3c0w3v2q5n7k9a1d4fz", "state": "running", "created": "2026-01-02T03:04:05Z", "started": "2026-01-02T03:04:05Z", "expires_at": "2026-01-03T03:04:05Z", "calls": 3,
		"counts": map[string]any{"waiting": 1, "held": 0, "succeeded": 2, "tool_errors": 0, "failed": 0, "denied": 0, "expired": 0, "canceled": 0, "unknown": 0},
	}
}

func exampleHeld() map[string]any {
	return map[string]any{"calls": []any{map[string]any{
		"index": 0, "custom_id": "a", "call_id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b0-3t9kq0vx7w2e", "approval_id": "appr_06b2t8m3c0w3v2q5n7k9a1d4fz", "server": "files", "tool": "delete_file",
		"arguments_digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "risk_level": 2, "by": "caller", "expires_at": "2026-01-02T03:14:05Z",
	}}}
}

func batchParam() *huma.Param {
	return openapi.PathParam("id", "The id of a batch.", "batch_06b2t8m3c0w3v2q5n7k9a1d4fz")
}

// batchStatuses are the statuses with which a batch can be refused.
var batchStatuses = []int{http.StatusNotFound, http.StatusConflict}

func ndjson(shape, description, example string) *huma.MediaType {
	return &huma.MediaType{Schema: openapi.LinesOf(openapi.Ref(shape), description), Example: example}
}

func batchAnswer(d *httpapi.Document, description string) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: d.SchemaOf(reflect.TypeFor[Batch]()), Example: exampleBatch()}}}
}

func resultLines(description string) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{
		"application/x-ndjson": ndjson(schemaLine, "One result on each line, in the order in which the calls ended. Pass cursor to continue after the line.", exampleResultLine),
	}}
}

func (b *handlers) opCreateBatch(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/batches", "create-batch", openapi.TagBatches, "Run many calls as a batch",
		"Accepts calls as a JSON document, or as a stream of any length with one call on each line (NDJSON). The stream is read as fast as the calls are stored, so its size is not limited by memory. "+
			"The answer is the batch; with stream=true it is the results, one on each line, as the calls end. A line that is not a valid call, or that repeats a custom_id, is refused on its own and listed in the results. "+
			"With an Idempotency-Key, a repeated request continues where the previous one ended.",
		append([]int{http.StatusUnprocessableEntity}, batchStatuses...)...)
	op.Parameters = []*huma.Param{
		openapi.QueryParam("stream", "Stream the results in the answer as the calls end.", openapi.Boolean()), openapi.QueryParam("open", "More calls follow with POST /batches/{id}/calls.", openapi.Boolean()),
		openapi.QueryParam("priority", "The priority of the batch, from -10 to 10. Each step of 5 doubles its share of the capacity, or halves it.", openapi.Integers(minPriority, maxPriority)),
		openapi.QueryParam("expires_in", "The number of seconds within which calls must be sent to a worker; the default is 86400 (24 hours).", b.expiresSchema()),
		openapi.QueryParam("callback_url", "The URL that is notified when the batch ends.", openapi.String()), httpapi.IdempotencyParam(),
	}
	op.RequestBody = &huma.RequestBody{Required: true, Description: "The calls.", Content: map[string]*huma.MediaType{
		"application/json": {Schema: openapi.Ref(schemaBatchBody), Example: map[string]any{"calls": []any{map[string]any{
			"custom_id": "a", "server": "everything", "tool": "echo", "arguments": map[string]any{"message": "hello"},
		}}}},
		"application/x-ndjson": ndjson(schemaBatchItem, "One call on each line.", exampleLine),
	}}
	op.Responses["201"] = batchAnswer(d, "The calls were stored.")
	op.Responses["201"].Headers = map[string]*huma.Param{"Location": openapi.Header("The path of the batch.", huma.TypeString, "/batches/batch_06b2t8m3c0w3v2q5n7k9a1d4fz")}
	op.Responses["200"] = resultLines("The results, with stream=true.")
	submit.MayReplay(op.Responses["201"])
	submit.MayReplay(op.Responses["200"])
	return op
}

func opListBatches() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/batches", "list-batches", openapi.TagBatches, "List your batches", "The newest first.")
	op.Parameters = []*huma.Param{
		{Name: "state", In: "query", Description: "Only batches in this state. ended: those in a final state, which are completed, canceled, expired and failed.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"receiving", "running", "canceling", "ended"}}},
		openapi.QueryParam("limit", "The maximum number of batches on a page; the default is 100.", openapi.Integers(1, httpapi.MaxPageLimit)), openapi.QueryParam("cursor", "The member next of the previous page.", openapi.String()),
	}
	return op
}

func opBatch() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodGet, "/batches/{id}", "get-batch", openapi.TagBatches, "Show a batch", "Its state and the number of its calls in each state.", http.StatusNotFound), batchParam())
}

func opAddCalls() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/batches/{id}/calls", "add-batch-calls", openapi.TagBatches, "Add calls to an open batch",
		"One call on each line. After a broken connection, GET the batch returns the number of stored lines; pass it as from so that the next request continues there.",
		batchStatuses...)
	op.Parameters = []*huma.Param{batchParam(), openapi.QueryParam("from", "The number of lines sent before; the request is refused if a different number is stored.", &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)})}
	op.RequestBody = &huma.RequestBody{Required: true, Description: "The calls.", Content: map[string]*huma.MediaType{"application/x-ndjson": ndjson(schemaBatchItem, "One call on each line.", exampleLine)}}
	return op
}

func opSealBatch() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodPost, "/batches/{id}/seal", "seal-batch", openapi.TagBatches, "Seal a batch", "The batch accepts no more calls, and ends when all its calls have ended.", batchStatuses...), batchParam())
}

func opBatchResults() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/batches/{id}/results", "get-batch-results", openapi.TagBatches, "Read the results of a batch",
		"One result on each line, in the order in which the calls ended; exactly those after the cursor. follow=true waits for further results until the batch has ended.", batchStatuses...)
	op.Parameters = []*huma.Param{
		batchParam(), openapi.QueryParam("cursor", "The cursor of the last line read.", openapi.String()), openapi.QueryParam("limit", "The maximum number of results in the answer; the default is all.", openapi.Integers(1, maxResults)),
		openapi.QueryParam("follow", "Wait for further results.", openapi.Boolean()),
	}
	op.Responses["200"] = resultLines("The results.")
	return op
}

func opBatchEvents(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodGet, "/batches/{id}/events", "get-batch-events", openapi.TagBatches, "Follow the progress of a batch", "Server-sent events: the current batch, and again after each change, until it has ended.",
		http.StatusNotFound)
	op.Parameters = []*huma.Param{batchParam()}
	op.Responses["200"] = &huma.Response{Description: "Events named batch.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: openapi.LinesOf(d.SchemaOf(reflect.TypeFor[Batch]()), "Events whose data is the batch.")}}}
	return op
}

func opCancelBatch() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodPost, "/batches/{id}/cancel", "cancel-batch", openapi.TagBatches, "Cancel a batch", "No further calls start; running calls may finish, and their results are kept.", batchStatuses...), batchParam())
}
