package batches

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

// Names of schemas.
const (
	schemaBatchItem = "BatchCall"
	schemaBatchBody = "BatchRequest"
	schemaLine      = "BatchResult"
)

const exampleLine = `{"custom_id":"a","server":"everything","tool":"echo","arguments":{"message":"hello"}}` + "\n"

const exampleResultLine = `{"index":0,"custom_id":"a","call_id":"call_06b2t8m3c0w3v2q5n7k9a1d4fz-b0-3t9kq0vx7w2e","state":"succeeded","worker":"worker-1-7f3k2a","attempt":1,"cursor":"4.0","result":{"content":[{"type":"text","text":"Echo: hello"}]}}` + "\n"

func batchParam() *huma.Param {
	return openapi.PathParam("id", "The id of a batch.", "batch_06b2t8m3c0w3v2q5n7k9a1d4fz")
}

// batchStatuses are what a batch can be refused with.
var batchStatuses = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}

func ndjson(shape, description, example string) *huma.MediaType {
	return &huma.MediaType{Schema: openapi.LinesOf(openapi.Ref(shape), description), Example: example}
}

func batchAnswer(d *httpapi.Document, description string) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: d.SchemaOf(reflect.TypeFor[Batch]())}}}
}

func resultLines(description string) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{
		"application/x-ndjson": ndjson(schemaLine, "One result on each line, in the order in which the calls ended. cursor goes on after the line.", exampleResultLine),
	}}
}

func (b *handlers) opCreateBatch(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/batches", "create-batch", openapi.TagBatches, "Run many calls under one handle",
		"Takes calls as a JSON document, or one on each line (NDJSON) without an end; the socket is read as fast as the calls are stored, so memory is no limit. "+
			"The answer is the handle; with stream=true it is the results, one on each line, while they come. A line that is no call, or whose custom_id came before, is refused by itself and has its place among the results. "+
			"With an Idempotency-Key the same request goes on where the last one ended.",
		append([]int{http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusTooManyRequests}, batchStatuses...)...)
	op.Parameters = []*huma.Param{
		openapi.QueryParam("stream", "Answer with the results while they come.", openapi.Boolean()), openapi.QueryParam("open", "More calls follow with POST /batches/{id}/calls.", openapi.Boolean()),
		openapi.QueryParam("priority", "-10 to 10; each 5 doubles or halves the share of the batch.", openapi.Integers(minPriority, maxPriority)),
		openapi.QueryParam("expires_in", "Seconds in which calls may leave; 24 h without it.", b.expiresSchema()),
		openapi.QueryParam("callback_url", "An address that is told of the end.", openapi.String()), httpapi.IdempotencyParam(),
	}
	op.RequestBody = &huma.RequestBody{Required: true, Description: "The calls.", Content: map[string]*huma.MediaType{
		"application/json": {Schema: openapi.Ref(schemaBatchBody), Example: map[string]any{"calls": []any{map[string]any{
			"custom_id": "a", "server": "everything", "tool": "echo", "arguments": map[string]any{"message": "hello"},
		}}}},
		"application/x-ndjson": ndjson(schemaBatchItem, "One call on each line.", exampleLine),
	}}
	op.Responses["201"] = batchAnswer(d, "The calls are stored.")
	op.Responses["201"].Headers = map[string]*huma.Param{"Location": openapi.Header("Where the batch is.", huma.TypeString, "/batches/batch_06b2t8m3c0w3v2q5n7k9a1d4fz")}
	op.Responses["200"] = resultLines("The results, with stream=true.")
	return op
}

func opListBatches() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/batches", "list-batches", openapi.TagBatches, "Your batches", "The newest first.", http.StatusBadRequest)
	op.Parameters = []*huma.Param{
		{Name: "state", In: "query", Description: "Only those in this state.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"receiving", "running", "canceling", "ended"}}},
		openapi.QueryParam("limit", "The most batches on one page; 100 without it.", openapi.Integers(1, httpapi.MaxPageLimit)), openapi.QueryParam("cursor", "The next of the page before.", openapi.String()),
	}
	return op
}

func opBatch() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodGet, "/batches/{id}", "get-batch", openapi.TagBatches, "A batch", "Its state and how many of its calls are in which state.", http.StatusNotFound, http.StatusServiceUnavailable), batchParam())
}

func opAddCalls() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/batches/{id}/calls", "add-batch-calls", openapi.TagBatches, "More calls for an open batch",
		"One call on each line. After a broken connection GET the batch says how many lines are stored, and from= makes sure that the next request goes on there.",
		append([]int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}, batchStatuses...)...)
	op.Parameters = []*huma.Param{batchParam(), openapi.QueryParam("from", "How many lines were sent before; refused where another number is stored.", &huma.Schema{Type: huma.TypeInteger, Minimum: openapi.Ptr(0.0)})}
	op.RequestBody = &huma.RequestBody{Required: true, Description: "The calls.", Content: map[string]*huma.MediaType{"application/x-ndjson": ndjson(schemaBatchItem, "One call on each line.", exampleLine)}}
	return op
}

func opSealBatch() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodPost, "/batches/{id}/seal", "seal-batch", openapi.TagBatches, "End the intake of a batch", "There will be no more calls; the batch ends when all have ended.", batchStatuses...), batchParam())
}

func opBatchResults(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodGet, "/batches/{id}/results", "get-batch-results", openapi.TagBatches, "The results of a batch",
		"One on each line, in the order in which the calls ended; exactly those after the cursor. follow=true waits for those to come, until the batch has ended.", batchStatuses...)
	op.Parameters = []*huma.Param{
		batchParam(), openapi.QueryParam("cursor", "The cursor of the last line that was read.", openapi.String()), openapi.QueryParam("limit", "The most results in one answer; all without it.", openapi.Integers(1, maxResults)),
		openapi.QueryParam("follow", "Wait for results to come.", openapi.Boolean()),
	}
	op.Responses["200"] = resultLines("The results.")
	return op
}

func opBatchEvents(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodGet, "/batches/{id}/events", "get-batch-events", openapi.TagBatches, "The progress of a batch", "Server-sent events: the batch as it is, and again after each change, until it has ended.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{batchParam()}
	op.Responses["200"] = &huma.Response{Description: "Events named batch.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: openapi.LinesOf(d.SchemaOf(reflect.TypeFor[Batch]()), "Events whose data is the batch.")}}}
	return op
}

func opCancelBatch() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodPost, "/batches/{id}/cancel", "cancel-batch", openapi.TagBatches, "Cancel a batch", "Nothing more starts; what runs may finish, and its results are kept.", batchStatuses...), batchParam())
}
