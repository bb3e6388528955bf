package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	deliveriesPath = "/webhooks/deliveries"
	opDeliveries   = "listWebhookDeliveries"
	opRetry        = "retryWebhookDelivery"
)

// deliveriesInput holds the parameters of the list, which are those of the front door.
type deliveriesInput struct {
	State    string `query:"state" enum:"waiting,dead" default:"dead" doc:"dead: deliveries that were given up. waiting: deliveries whose attempts continue."`
	Receiver string `query:"receiver" doc:"Only deliveries to this host and port."`
	Limit    int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The maximum number of deliveries in the answer."`
}

// deliveryInput identifies a delivery.
type deliveryInput struct {
	ID string `path:"id" doc:"The id of a delivery."`
}

// registerDeliveries registers the operations on the deliveries of approval events. They have the
// shape of those of the front door, so that the same commands work.
func (a *api) registerDeliveries() {
	const who = "Requires a group of approver.notify.admin_groups."
	get(a, operation(opDeliveries, "GET "+deliveriesPath, "List the deliveries of approval events that failed or wait", who, "The deliveries of your tenant; those of all tenants for administrators of the default tenant.", nil), a.listDeliveries)
	get(a, operation(opRetry, "POST "+deliveriesPath+"/{id}/retry", "Send a delivery that was given up again", who, "The delivery, which waits for its first attempt.", nil), a.retryDelivery)
}

// checkDeliveriesQuery refuses invalid parameters of the list, with messages of our own.
func checkDeliveriesQuery(values url.Values) error {
	for name, given := range values {
		if len(given) > 1 {
			return schema.Errorf(schema.KindInvalidRequest, "The parameter %q is given twice.", name)
		}
		switch name {
		case "state":
			if given[0] != "dead" && given[0] != "waiting" {
				return schema.Errorf(schema.KindInvalidRequest, "The parameter state must be dead or waiting.")
			}
		case "limit":
			if n, err := strconv.Atoi(given[0]); err != nil || n < 1 || n > maxPageLimit {
				return schema.Errorf(schema.KindInvalidRequest, "The parameter limit must be a number from 1 to %d.", maxPageLimit)
			}
		case "receiver":
		default:
			return errNoParameter(name)
		}
	}
	return nil
}

// deliveries returns the outbox, which may be nil, and the tenants whose deliveries the caller may
// see.
func (a *api) deliveries(who *schema.Principal) (*notify.Webhooks, schema.Tenants, error) {
	if !a.o.open() && !overlap(a.o.DeliveryAdmins, who.Groups) {
		return nil, schema.Tenants{}, schema.Errorf(schema.KindForbidden, "Deliveries of approval events are shown to members of approver.notify.admin_groups only; ask the operator.")
	}
	of := schema.OnlyTenant(who.Tenant)
	if who.Tenant.Is(schema.DefaultTenant) {
		of = schema.AllTenants()
	}
	if a.o.Deliveries == nil {
		return nil, of, nil
	}
	return a.o.Deliveries(), of, nil
}

func (a *api) listDeliveries(ctx context.Context, in *deliveriesInput) (webhook.EntryList, error) {
	who := exchangeOf(ctx).who
	outbox, of, err := a.deliveries(&who)
	if err != nil || outbox == nil {
		return webhook.EntryList{Deliveries: []webhook.Entry{}}, err
	}
	return webhook.List(outbox.Deliveries(of, in.State == "dead"), in.Receiver, in.Limit), nil
}

func (a *api) retryDelivery(ctx context.Context, in *deliveryInput) (out webhook.Entry, err error) {
	who := exchangeOf(ctx).who
	outbox, of, err := a.deliveries(&who)
	if err != nil {
		return out, err
	}
	if outbox == nil {
		return out, schema.Errorf(schema.KindNotFound, "There is no such webhook delivery: approver.notify.urls is not set, so nothing is delivered.")
	}
	act := audit.Entry{
		By: who.Name, Owner: who.Owner, Tenant: who.Tenant, Channel: "api", Credential: "configuration " + who.Name,
		Operation: "retry-webhook-delivery", Path: deliveriesPath + "/" + url.PathEscape(in.ID) + "/retry",
	}
	if err := a.record(ctx, act); err != nil {
		return out, err
	}
	d, err := outbox.Retry(ctx, of, in.ID)
	if act.Status = http.StatusOK; err != nil {
		act.Status = problem.Of(err).Status
	}
	_ = a.record(ctx, act) // it is done, and logged there
	if err != nil {
		return out, err
	}
	return d.Entry(), nil
}

// record adds an action of an operator to the audit record. The end of the request does not stop it.
func (a *api) record(ctx context.Context, e audit.Entry) error {
	if a.o.Audit == nil {
		return nil
	}
	return a.o.Audit.Act(context.WithoutCancel(ctx), e)
}
