// Package webhooks has the operations on the deliveries of webhooks: list those that wait or were
// given up, and send one again.
//
// A principal sees the deliveries of its own tenant; administrators of the default tenant see all.
package webhooks

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

type listInput struct {
	State    string `query:"state" enum:"waiting,dead" default:"dead" doc:"dead: deliveries that were given up. waiting: deliveries whose attempts continue."`
	Receiver string `query:"receiver" maxLength:"300" doc:"Only deliveries to this host and port." example:"hooks.example.com:443"`
	Limit    int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The maximum number of deliveries in the answer."`
}

type retryInput struct {
	ID string `path:"id" maxLength:"64" doc:"The id of a delivery." example:"call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
}

// handlers are the operations on deliveries. sender is nil if webhooks are not configured.
type handlers struct{ sender *webhook.Sender }

// Register registers the operations on the deliveries of the sender, which may be nil.
func Register(d *httpapi.Document, sender *webhook.Sender) {
	h := &handlers{sender}
	d.NameSchema(reflect.TypeFor[webhook.Entry](), "WebhookDelivery")
	d.NameSchema(reflect.TypeFor[webhook.EntryList](), "WebhookDeliveryList")
	httpapi.Get(d, opList(), h.list)
	httpapi.Get(d, opRetry(), h.retry)
}

func opList() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/webhooks/deliveries", "list-webhook-deliveries", openapi.TagWebhooks, "List webhook deliveries",
		"The deliveries of webhooks for calls and batches that were given up, or that wait for an attempt, oldest first. With the scope admin of the default tenant you see those of all tenants, otherwise those of your own. A delivery that was given up is kept until ten days after it was accepted.")
	return openapi.Answers(op, "The deliveries that you may see.", map[string]any{"total": 1, "deliveries": []any{example()}})
}

func opRetry() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/webhooks/deliveries/{id}/retry", "retry-webhook-delivery", openapi.TagWebhooks, "Send a webhook delivery again",
		"Restarts a delivery that was given up, with all its attempts; the first one is made at once. Its webhook-id stays the same.", http.StatusNotFound, http.StatusConflict)
	again := example()
	again["state"], again["attempts"], again["next_attempt_at"] = "waiting", 0, "2026-01-03T10:00:00Z"
	delete(again, "reason")
	delete(again, "ended_at")
	return openapi.Answers(op, "The delivery, which waits for its first attempt.", again)
}

func example() map[string]any {
	return map[string]any{
		"id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "url": "https://hooks.example.com/callyard", "receiver": "hooks.example.com:443", "type": "call.succeeded", "state": "dead", "size": 412,
		"created_at": "2026-01-02T03:04:05Z", "attempts": 8, "last_error": "The receiver answered with HTTP 503.", "reason": "The receiver answered with HTTP 503.", "ended_at": "2026-01-03T10:00:00Z",
	}
}

// list is GET /webhooks/deliveries.
func (h *handlers) list(ctx context.Context, in *listInput) (webhook.EntryList, error) {
	if h.sender == nil {
		return webhook.EntryList{Deliveries: []webhook.Entry{}}, nil
	}
	all := h.sender.Deliveries(scope.TenantsOf(&httpapi.Of(ctx).Principal, scope.Admin), in.State == "dead")
	return webhook.List(all, in.Receiver, in.Limit), nil
}

// retry is POST /webhooks/deliveries/{id}/retry.
func (h *handlers) retry(ctx context.Context, in *retryInput) (webhook.Entry, error) {
	if h.sender == nil {
		return webhook.Entry{}, schema.Errorf(schema.KindNotFound, "There is no such webhook delivery: webhooks.secrets_file is not set, so nothing is delivered.")
	}
	d, err := h.sender.Retry(ctx, scope.TenantsOf(&httpapi.Of(ctx).Principal, scope.Admin), in.ID)
	if err != nil {
		return webhook.Entry{}, err
	}
	return d.Entry(), nil
}
