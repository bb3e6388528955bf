package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/ui"
)

// figure is a number of the overview. Each has one source: the sum of what the front doors count,
// a metric that all of them have alike, or a list of the API.
type figure struct {
	Label, Value string
	Unknown      bool
	Note         string
	To           string // the list behind it
	Tone         string
}

type overviewPage struct {
	FrontDoor string
	Figures   []figure
	Doors     int    // the number of front doors whose calls the figures have; 0: only those of FrontDoor
	Silent    int    // the number of front doors whose calls they lack
	Over      string // how long the rates are taken over; empty while nothing is known
	Trouble   []callyard.ServerItem
	Changed   []callyard.ServerItem // servers with definitions that nobody accepted
	Servers   int
	Now       time.Time
}

func (c *Console) servers(ctx context.Context, v Visit) ([]callyard.ServerItem, error) {
	list, err := cached(c.cache, v, "servers", func() (callyard.ServerList, error) {
		return get[callyard.ServerList](ctx, c, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.ListServers(ctx)
		})
	})
	return list.Servers, err
}

// inTrouble says that no worker can run calls of a server, or that not all of them can.
func inTrouble(s callyard.ServerItem) bool {
	return s.InitializationState == "error" || s.InitializationState == "timeout" || s.WorkerCount == 0 ||
		slices.ContainsFunc(s.Workers, func(w callyard.ServerWorker) bool {
			return w.InitializationState == "error" || w.InitializationState == "timeout"
		})
}

// overview is the first page: figures, and what needs somebody.
func (c *Console) overview(w http.ResponseWriter, r *http.Request, v Visit) error {
	servers, err := c.servers(r.Context(), v)
	if err != nil {
		return c.orKey(w, r, err)
	}
	m, err := c.measure(r.Context(), v)
	if err != nil {
		return c.orKey(w, r, err)
	}
	page := overviewPage{FrontDoor: c.o.FrontDoor(), Servers: len(servers), Silent: m.silent, Now: c.o.Now()}
	if !m.alone {
		page.Doors = len(m.doors)
	}
	for _, s := range servers {
		if inTrouble(s) {
			page.Trouble = append(page.Trouble, s)
		}
		if len(s.ChangedTools) > 0 {
			page.Changed = append(page.Changed, s)
		}
	}
	slices.SortFunc(page.Trouble, func(a, b callyard.ServerItem) int { return cmp.Compare(a.ID, b.ID) })
	rates := c.meter.rates()
	if rates.Over > 0 {
		page.Over = fmt.Sprintf("%d s", int(rates.Over.Seconds()+0.5))
	}
	page.Figures = append(ratesOf(rates), statesOf(&m, len(page.Trouble), len(servers))...)
	return c.render(w, v, http.StatusOK, "overview", view{Title: "Overview", Here: Root, Live: true, Page: page})
}

// ratesOf returns the figures that are taken over a time.
func ratesOf(r rates) []figure {
	calls := figure{Label: "Calls per second", To: Root + "/calls"}
	errors := figure{Label: "Errors per second", To: Root + "/calls"}
	p50, p99 := figure{Label: "Latency p50", To: Root + "/calls"}, figure{Label: "Latency p99", To: Root + "/calls"}
	if r.Over == 0 {
		all := []figure{calls, errors, p50, p99}
		for i := range all {
			all[i].Unknown, all[i].Note = true, "measuring"
		}
		return all
	}
	calls.Value = significant(r.Calls)
	errors.Value, errors.Note = significant(r.Failed), "failed, denied or canceled"
	if r.Failed > 0 {
		errors.Tone = "danger"
	}
	if r.ToolError > 0 {
		errors.Note += ", and " + significant(r.ToolError) + " tool errors"
	}
	for f, s := range map[*figure]float64{&p50: r.P50, &p99: r.P99} {
		if f.Value = seconds(s); s < 0 {
			f.Value, f.Note = "–", "no call ended"
		}
	}
	return []figure{calls, errors, p50, p99}
}

// statesOf returns the figures of now.
func statesOf(m *measured, trouble, servers int) []figure {
	gauge := func(label string, value float64, to string) figure {
		if value < 0 {
			return figure{Label: label, Unknown: true, Note: "not reported", To: to}
		}
		return figure{Label: label, Value: ui.Number(int64(value)), To: to}
	}
	held := gauge("Held for approval", m.held, "/")
	if m.held > 0 {
		held.Tone = "warning"
		if m.oldestHeld > 0 {
			held.Note = "the oldest for " + time.Duration(m.oldestHeld*float64(time.Second)).Round(time.Second).String()
		}
	}
	inFlight, waiting := m.flying()
	flight := gauge("In flight", inFlight, Root+"/calls?state=running")
	if waiting > 0 {
		flight.Note = ui.Number(int64(waiting)) + " wait for a slot"
	}
	workers := gauge("Workers", m.workers, Root+"/fleet")
	if m.workers == 0 {
		workers.Tone = "danger"
	}
	if m.disagreements > 0 {
		workers.Note = ui.Number(int64(m.disagreements)) + " differences in configuration"
	}
	bad := figure{Label: "Servers in trouble", Value: ui.Number(trouble), Note: "of " + ui.Number(servers), To: Root + "/servers?state=trouble"}
	if trouble > 0 {
		bad.Tone = "danger"
	}
	return []figure{flight, held, workers, bad, gauge("Open batches", m.batches, Root+"/batches")}
}
