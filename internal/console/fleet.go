package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

// fleetPages shows workers and front doors, and drains workers.
type fleetPages struct{ *Console }

type fleetPage struct {
	Workers []callyard.WorkerItem
	Doors   []callyard.FrontDoorItem
	Others  []callyard.ConfiguredProcess
	// Disagreements lists the parts of the configuration of which processes use different versions.
	Disagreements []callyard.ConfigurationDisagreement
	Version       string
	Started       time.Time
	Now           time.Time
	Done, Drain   string
	// Spare reports whether another worker that is not draining remains when one is drained.
	Spare bool
}

// fleet serves the page of workers and other processes.
func (c fleetPages) fleet(w http.ResponseWriter, r *http.Request, v Visit) error {
	ctx := r.Context()
	workers, err := current[callyard.WorkerList](ctx, c.Console, v, api.ListWorkers)
	if err != nil {
		return c.orKey(w, r, err)
	}
	status, err := current[callyard.ConfigurationStatus](ctx, c.Console, v, api.GetConfiguration)
	if err != nil {
		return err
	}
	version, err := current[callyard.Version](ctx, c.Console, v, api.GetVersion)
	if err != nil {
		return err
	}
	page := fleetPage{Workers: slices.Clone(workers.Workers), Disagreements: status.Disagreements, Version: version.Version, Started: version.Started, Now: c.o.Now(), Done: doneOf(r, v), Drain: v.Token(Root + "/fleet/drain")}
	slices.SortFunc(page.Workers, func(a, b callyard.WorkerItem) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	doors, err := c.frontDoors(ctx, v)
	if err != nil {
		return err
	}
	page.Doors = doors.FrontDoors
	ready := 0
	for i := range page.Workers {
		if !page.Workers[i].Draining {
			ready++
		}
	}
	page.Spare = ready > 1
	for _, p := range status.Processes {
		if p.Role != "frontdoor" && p.Role != "worker" {
			page.Others = append(page.Others, p)
		}
	}
	return c.render(w, v, http.StatusOK, "fleet", view{Title: "Fleet", Here: Root + "/fleet", Live: true, Page: page})
}

// drain asks a worker to finish its calls and exit.
func (c fleetPages) drain(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.PostForm.Get("worker")
	if _, err := c.ask(r.Context(), v, with(api.DrainWorker, id)); err != nil {
		return err
	}
	c.acted(v, "drain", "worker", id)
	http.Redirect(w, r, at(Root+"/fleet", "done", v.done("drain")), http.StatusSeeOther)
	return nil
}
