// Package webhooks has the operations on the deliveries of webhooks: list those that wait or were
// given up, and send one again.
//
// A principal sees the deliveries of its own tenant; administrators of the default tenant see all.
// The names of its types are the names of schemas in the OpenAPI document.
package webhooks

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

// WebhookDelivery is one event for one receiver.
type WebhookDelivery struct {
	ID        string          `json:"id" doc:"The header webhook-id of its requests." example:"call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	URL       string          `json:"url" doc:"The URL of the receiver. It can contain a secret." example:"https://hooks.example.com/callyard"`
	Receiver  string          `json:"receiver" doc:"The host and port of the receiver." example:"hooks.example.com:443"`
	Type      string          `json:"type" doc:"The type of the event." example:"call.succeeded"`
	Tenant    schema.TenantID `json:"tenant,omitempty" doc:"The tenant of the call or batch; absent for the default tenant." example:"billing"`
	State     string          `json:"state" enum:"waiting,dead" doc:"waiting: attempts continue. dead: it was given up."`
	Size      int             `json:"size" doc:"The size of the body, in bytes." example:"412"`
	Created   time.Time       `json:"created_at" doc:"When it was accepted."`
	Attempts  int             `json:"attempts" doc:"The number of attempts that were started." example:"8"`
	Next      *time.Time      `json:"next_attempt_at,omitempty" doc:"When the next attempt is due; absent if it was given up."`
	LastError string          `json:"last_error,omitempty" doc:"Why the last attempt failed." example:"The receiver answered with HTTP 503."`
	Reason    string          `json:"reason,omitempty" doc:"Why it was given up." example:"The receiver answered with HTTP 410."`
	Ended     *time.Time      `json:"ended_at,omitempty" doc:"When it was given up."`
}

// WebhookDeliveryList is the answer to GET /webhooks/deliveries.
type WebhookDeliveryList struct {
	Deliveries []WebhookDelivery `json:"deliveries" nullable:"false" doc:"The deliveries, oldest first."`
	Total      int               `json:"total" doc:"The number of all matching deliveries, which can be more than the limit." example:"1"`
}

func deliveryOf(d *webhook.Delivery) WebhookDelivery {
	out := WebhookDelivery{
		ID: d.ID, URL: d.URL, Receiver: d.Receiver, Type: d.Type, Tenant: d.Tenant.Stored(), State: "waiting", Size: d.Size, Created: d.Created,
		Attempts: d.Attempts, LastError: d.LastError, Reason: d.Dead,
	}
	if d.Dead != "" {
		out.State, out.Ended = "dead", &d.Ended
	} else if !d.Next.IsZero() {
		out.Next = &d.Next
	}
	return out
}

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
	httpapi.Get(d, opList(), h.list)
	httpapi.Get(d, opRetry(), h.retry)
}

func opList() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/webhooks/deliveries", "list-webhook-deliveries", openapi.TagWebhooks, "List webhook deliveries",
		"The deliveries of webhooks for calls and batches that were given up, or that wait for an attempt, oldest first. With the scope admin of the default tenant you see those of all tenants, otherwise those of your own. A delivery that was given up is kept until ten days after it was accepted.",
		http.StatusBadRequest)
	return openapi.Answers(op, "The deliveries that you may see.", map[string]any{"total": 1, "deliveries": []any{example()}})
}

func opRetry() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/webhooks/deliveries/{id}/retry", "retry-webhook-delivery", openapi.TagWebhooks, "Send a webhook delivery again",
		"Restarts a delivery that was given up, with all its attempts; the first one is made at once. Its webhook-id stays the same.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable)
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
func (h *handlers) list(ctx context.Context, in *listInput) (WebhookDeliveryList, error) {
	list := WebhookDeliveryList{Deliveries: []WebhookDelivery{}}
	if h.sender == nil {
		return list, nil
	}
	for _, d := range h.sender.Deliveries(scope.TenantsOf(&httpapi.Of(ctx).Principal, scope.Admin), in.State == "dead") {
		if in.Receiver != "" && d.Receiver != in.Receiver {
			continue
		}
		if list.Total++; list.Total <= in.Limit {
			list.Deliveries = append(list.Deliveries, deliveryOf(&d))
		}
	}
	return list, nil
}

// retry is POST /webhooks/deliveries/{id}/retry.
func (h *handlers) retry(ctx context.Context, in *retryInput) (WebhookDelivery, error) {
	if h.sender == nil {
		return WebhookDelivery{}, schema.Errorf(schema.KindNotFound, "There is no such webhook delivery: webhooks.secrets_file is not set, so nothing is delivered.")
	}
	d, err := h.sender.Retry(ctx, scope.TenantsOf(&httpapi.Of(ctx).Principal, scope.Admin), in.ID)
	if err != nil {
		return WebhookDelivery{}, err
	}
	return deliveryOf(&d), nil
}
