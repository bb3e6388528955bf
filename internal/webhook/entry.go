package webhook

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Entry is a delivery as the REST APIs of the front door and the approver describe it.
type Entry struct {
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

// EntryList is a list of deliveries in the REST APIs.
type EntryList struct {
	Deliveries []Entry `json:"deliveries" nullable:"false" doc:"The deliveries, oldest first."`
	Total      int     `json:"total" doc:"The number of all matching deliveries, which can be more than the limit." example:"1"`
}

// Entry describes the delivery for a REST API.
func (d *Delivery) Entry() Entry {
	out := Entry{
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

// List returns the first deliveries to a receiver, or to any if receiver is empty.
func List(all []Delivery, receiver string, limit int) EntryList {
	list := EntryList{Deliveries: []Entry{}}
	for i := range all {
		if receiver != "" && all[i].Receiver != receiver {
			continue
		}
		if list.Total++; list.Total <= limit {
			list.Deliveries = append(list.Deliveries, all[i].Entry())
		}
	}
	return list
}
