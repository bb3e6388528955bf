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
	"github.com/callyard/callyard/pkg/schema"
)

// figure is a number of the overview. Each has one source: the sum of the front doors' counts, a
// metric that all of them share, or a list of the API.
type figure struct {
	Label, Value string
	Unknown      bool
	Note         string
	To           string // the list behind it
	Tone         string
}

type overviewPage struct {
	Figures []figure
	Doors   int    // number of front doors in the figures
	Silent  int    // number of front doors missing from them
	Refused string // the reason why the key may not see the figures of the fabric; empty if it may
	Over    string // the time range of the rates; empty if not known yet
	Trouble []callyard.ServerItem
	Changed []callyard.ServerItem // servers with definitions that were not accepted
	Servers int
	Now     time.Time
}

func (c *Console) servers(ctx context.Context, v Visit) ([]callyard.ServerItem, error) {
	list, err := current[callyard.ServerList](ctx, c, v, api.ListServers)
	return list.Servers, err
}

// hasTrouble reports whether some or all workers cannot run calls of a server.
func hasTrouble(s callyard.ServerItem) bool {
	return s.InitializationState == "error" || s.InitializationState == "timeout" || s.WorkerCount == 0 ||
		slices.ContainsFunc(s.Workers, func(w callyard.ServerWorker) bool {
			return w.InitializationState == "error" || w.InitializationState == "timeout"
		})
}

// overview serves the first page: figures, and items that need attention.
func (c *Console) overview(w http.ResponseWriter, r *http.Request, v Visit) error {
	servers, err := c.servers(r.Context(), v)
	if err != nil {
		return c.orKey(w, r, err)
	}
	page := overviewPage{Servers: len(servers), Now: c.o.Now()}
	m, err := c.measure(r.Context(), v)
	switch {
	case schema.KindOf(err) == schema.KindForbidden: // the key's tenant does not see every server
		page.Refused = schema.AsError(err).Detail
	case err != nil:
		return c.orKey(w, r, err)
	}
	page.Doors, page.Silent = len(m.doors), m.silent
	for _, s := range servers {
		if hasTrouble(s) {
			page.Trouble = append(page.Trouble, s)
		}
		if len(s.ChangedTools) > 0 {
			page.Changed = append(page.Changed, s)
		}
	}
	slices.SortFunc(page.Trouble, func(a, b callyard.ServerItem) int { return cmp.Compare(a.ID, b.ID) })
	trouble := troubleFigure(len(page.Trouble), len(servers))
	if page.Refused != "" {
		page.Figures = []figure{trouble}
		return c.render(w, v, http.StatusOK, "overview", view{Title: "Overview", Here: Root, Live: true, Page: page})
	}
	rates := c.meter.rates()
	if rates.Over > 0 {
		page.Over = fmt.Sprintf("%d s", int(rates.Over.Seconds()+0.5))
	}
	page.Figures = append(ratesOf(rates), statesOf(&m, trouble)...)
	return c.render(w, v, http.StatusOK, "overview", view{Title: "Overview", Here: Root, Live: true, Page: page})
}

// ratesOf returns the figures that cover a time range.
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
		errors.Note += ", and tool errors: " + significant(r.ToolError)
	}
	for f, s := range map[*figure]float64{&p50: r.P50, &p99: r.P99} {
		if f.Value = seconds(s); s < 0 {
			f.Value, f.Note = "–", "no call ended"
		}
	}
	return []figure{calls, errors, p50, p99}
}

// troubleFigure returns the figure of the servers in trouble.
func troubleFigure(trouble, servers int) figure {
	bad := figure{Label: "Servers in trouble", Value: ui.Number(trouble), Note: "of " + ui.Number(servers), To: Root + "/servers?state=trouble"}
	if trouble > 0 {
		bad.Tone = "danger"
	}
	return bad
}

// statesOf returns the current figures.
func statesOf(m *measured, trouble figure) []figure {
	held := figure{Label: "Held for approval", Value: ui.Number(m.fabric.Approvals), To: "/"}
	if m.fabric.Approvals > 0 {
		held.Tone = "warning"
	}
	if at := m.fabric.OldestApproval; at != nil {
		held.Note = "the oldest for " + seconds(max(m.at.Sub(*at), time.Second).Round(time.Second).Seconds())
	}
	inFlight, waiting := m.flying()
	flight := figure{Label: "In flight", Value: ui.Number(inFlight), To: Root + "/calls?state=running"}
	if waiting > 0 {
		flight.Note = "waiting for a slot: " + ui.Number(waiting)
	}
	workers := figure{Label: "Workers", Value: ui.Number(m.fabric.Workers), To: Root + "/fleet"}
	if m.fabric.Workers == 0 {
		workers.Tone = "danger"
	}
	if n := m.fabric.Disagreements; n > 0 {
		workers.Note = "differences in configuration: " + ui.Number(n)
	}
	return []figure{flight, held, workers, trouble, {Label: "Open batches", Value: ui.Number(m.fabric.Batches), To: Root + "/batches"}}
}
