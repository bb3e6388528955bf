package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/search"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// definitions holds the parsed definitions of one digest.
type definitions struct {
	raw   *schema.Definitions
	tools map[string]*schema.Tool
	order []*schema.Tool
	found *search.Segment
}

// LabelsFunc returns the search labels that the operator configured for a tool. It is safe for
// concurrent use.
type LabelsFunc func(server, tool string) search.Labels

// read parses a server's definitions only as far as needed to find its tools.
func read(server schema.ServerID, raw *schema.Definitions, labels LabelsFunc, log *slog.Logger) *definitions {
	d := &definitions{raw: raw, tools: make(map[string]*schema.Tool, len(raw.Tools))}
	var twice, nameless int
	var again string // a duplicate name
	for _, def := range raw.Tools {
		var head struct {
			Name        string          `json:"name"`
			Input       json.RawMessage `json:"inputSchema"`
			Annotations json.RawMessage `json:"annotations"`
			Meta        json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal(def, &head); err != nil || head.Name == "" {
			nameless++
			continue
		}
		if d.tools[head.Name] != nil {
			twice++
			again = head.Name
			continue
		}
		t := &schema.Tool{Server: server, Name: head.Name, Raw: def, Digest: schema.Digest(def), Input: head.Input, Tags: tagsOf(head.Meta)}
		hint(t, head.Annotations)
		d.tools[t.Name] = t
		d.order = append(d.order, t)
	}
	// One log line per list: there may be thousands of duplicates, and lists are read repeatedly.
	if twice > 0 {
		log.Warn("a server has several tools with the same name; the first one is used", "server", server, "tool", again, "left_out", twice)
	}
	if nameless > 0 {
		log.Warn("tools without a readable name are skipped", "server", server, "left_out", nameless)
	}
	var own func(tool string) search.Labels
	if labels != nil {
		own = func(tool string) search.Labels { return labels(string(server), tool) }
	}
	d.found = search.NewSegment(d.order, own)
	return d
}

// hint sets the hints of a tool. A hint that is absent, or not a boolean, has its default, which is
// the more dangerous value.
func hint(t *schema.Tool, annotations json.RawMessage) {
	said := func(name string, otherwise bool) bool {
		switch value := rawjson.Get(annotations, name); string(value) {
		case "true":
			return true
		case "false":
			return false
		}
		return otherwise
	}
	t.ReadOnly, t.Idempotent = said("readOnlyHint", false), said("idempotentHint", false)
	t.Destructive, t.OpenWorld = said("destructiveHint", !t.ReadOnly), said("openWorldHint", true)
}

// tagsOf returns the tags of a tool: "tags" in its _meta, or in the object that FastMCP adds to it.
func tagsOf(meta json.RawMessage) []string {
	if len(meta) == 0 {
		return nil
	}
	type tagged struct {
		Tags []string `json:"tags"`
	}
	var own tagged
	var fastMCP struct {
		Now    tagged `json:"fastmcp"`
		Before tagged `json:"_fastmcp"`
	}
	_ = json.Unmarshal(meta, &own) // values of other types are ignored
	_ = json.Unmarshal(meta, &fastMCP)
	return slices.Concat(own.Tags, fastMCP.Now.Tags, fastMCP.Before.Tags)
}

// reader fetches the definitions of servers from workers, and starts added servers there.
type reader struct {
	c       *Catalog
	refused map[placement]string    // the refusals of added servers at the last attempt
	orphans map[placement]time.Time // removed servers that still run, and since when that is known
}

// run fetches announced definitions that are not yet known.
func (r *reader) run(ctx context.Context) {
	c := r.c
	pins := &pinner{c: c, logged: make(map[schema.ServerID]string)}
	retry := time.NewTicker(bus.AnnounceEvery)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-retry.C:
		}
		var reading sync.WaitGroup
		missing := r.missing()
		for id, from := range missing {
			reading.Go(func() {
				if err := r.read(ctx, id, from); err != nil && ctx.Err() == nil {
					c.log.Warn("reading the definitions of a server failed", "server", id, "worker", from, "error", err)
				}
			})
		}
		reading.Wait()
		if len(missing) > 0 {
			embed(c)
		}
		pins.run(ctx)
		r.spread(ctx)
		r.stopOrphans(ctx, time.Now())
	}
}

// missing returns the servers whose announced definitions are not known, each with a worker that
// has them.
func (r *reader) missing() map[schema.ServerID]schema.WorkerID {
	c := r.c
	c.mu.RLock()
	defer c.mu.RUnlock()
	missing := make(map[schema.ServerID]schema.WorkerID)
	for id, s := range c.servers {
		if s.want != "" && c.defs[defsKey(id, s.want)] == nil {
			missing[id] = s.from
		}
	}
	return missing
}

func (r *reader) read(ctx context.Context, id schema.ServerID, worker schema.WorkerID) error {
	c := r.c
	body, err := c.router.Request(ctx, worker, bus.MethodDescribe, id, nil, describeTimeout)
	if err != nil {
		return err
	}
	var answer bus.Description
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the worker's answer: %w", err)
	}
	if answer.Definitions == nil {
		return nil // the worker has none yet; a later announcement triggers another read
	}
	d := read(id, answer.Definitions, c.finding.Labels, c.log)
	c.mu.Lock()
	c.defs[defsKey(id, answer.Digest)] = d
	c.rebuildLocked()
	c.mu.Unlock()
	c.changes.notify()
	return nil
}

func defsKey(server schema.ServerID, digest string) string { return string(server) + "\x00" + digest }
