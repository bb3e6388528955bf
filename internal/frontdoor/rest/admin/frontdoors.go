package admin

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

// FrontDoorItem is a live front door.
type FrontDoorItem struct {
	ID       string         `json:"id" doc:"The id of the process, which is new after each start." example:"frontdoor_7f3k2a"`
	Version  string         `json:"version,omitempty" doc:"Absent if the front door runs an older version, which does not announce it." example:"0.1.0"`
	Region   string         `json:"region,omitempty" doc:"The region of the front door; absent if none is configured." example:"north"`
	Started  *time.Time     `json:"started,omitempty" doc:"When the process started; absent if the front door runs an older version, which does not announce it."`
	Draining bool           `json:"draining" doc:"Whether the front door is draining: it finishes its calls and accepts no new ones."`
	Load     *FrontDoorLoad `json:"load,omitempty" doc:"Absent if the front door runs an older version, which does not announce it."`
}

// FrontDoorLoad counts the calls of a front door.
type FrontDoorLoad struct {
	Ended      uint64          `json:"ended" doc:"The calls that ended since the front door started, as callyard_calls_total counts them."`
	Failed     uint64          `json:"failed" doc:"The ended calls without a result: failed, denied or canceled."`
	ToolErrors uint64          `json:"tool_errors" doc:"The ended calls whose result reports an error."`
	InFlight   int             `json:"in_flight" doc:"The calls that were admitted and have not ended, including those that wait for a slot. Held calls are not among them."`
	Waiting    int             `json:"waiting" doc:"The calls in flight that wait for a slot."`
	Times      []FrontDoorTime `json:"times" nullable:"false" doc:"The number of ended calls by duration, from admission to end, in ascending order."`
}

// FrontDoorTime counts the calls of one bucket of the histogram.
type FrontDoorTime struct {
	AtMost float64 `json:"at_most,omitempty" doc:"The maximum duration in seconds; absent in the last element, which has no upper bound." example:"0.025"`
	Calls  uint64  `json:"calls" doc:"The number of ended calls that took longer than the previous element allows, and at most this duration."`
}

// Fabric holds figures that are the same at all front doors.
type Fabric struct {
	Workers        int        `json:"workers" doc:"The number of live workers."`
	Approvals      int        `json:"approvals" doc:"The number of pending approvals."`
	OldestApproval *time.Time `json:"oldest_approval,omitempty" doc:"When the oldest pending approval was requested; absent if none is pending."`
	Batches        int        `json:"batches" doc:"The number of batches that have not ended."`
	Disagreements  int        `json:"disagreements" doc:"The number of parts of the configuration for which live processes use different versions. Each server is a part."`
}

// FrontDoorList is the answer to GET /front-doors.
type FrontDoorList struct {
	Fabric Fabric `json:"fabric" doc:"Figures of the whole installation. The metrics have them too."`

	FrontDoors []FrontDoorItem `json:"front_doors" nullable:"false" doc:"The answering front door is first, with current counts; the others announced theirs about a second ago or less."`
}

func opFrontDoors() huma.Operation {
	return openapi.Operation(http.MethodGet, "/front-doors", "list-front-doors", openapi.TagFleet, "List front doors and their load",
		"The live front doors, with the number of calls that each has counted. Each call is counted once, by the front door at which it ended, so the sum over all front doors is the total of the installation. This is cheaper to read than the metrics, which have these figures for each server and tool.")
}

func (a *handlers) frontDoors() FrontDoorList {
	processes, backlog := a.o.Catalog.Processes(), a.o.Backlog()
	list := FrontDoorList{FrontDoors: []FrontDoorItem{}, Fabric: Fabric{
		Workers: len(a.o.Catalog.Workers()), Approvals: backlog.Approvals, Batches: backlog.Batches, Disagreements: len(catalog.Disagreements(processes)),
	}}
	if at := backlog.OldestApproval; !at.IsZero() {
		list.Fabric.OldestApproval = new(at.UTC())
	}
	for _, p := range processes {
		if p.Door == nil {
			continue
		}
		item := FrontDoorItem{ID: p.ID, Version: p.Door.Version, Region: p.Door.Region, Draining: p.Door.Draining}
		if !p.Door.Started.IsZero() {
			item.Started = &p.Door.Started
		}
		if l := p.Door.Load; l != nil {
			item.Load = &FrontDoorLoad{Ended: l.Ended, Failed: l.Failed, ToolErrors: l.ToolErrors, InFlight: l.InFlight, Waiting: l.Waiting, Times: make([]FrontDoorTime, len(l.Times))}
			for i, t := range l.Times {
				item.Load.Times[i] = FrontDoorTime(t)
			}
		}
		list.FrontDoors = append(list.FrontDoors, item)
	}
	return list
}
