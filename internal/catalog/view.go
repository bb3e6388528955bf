package catalog

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// Server is what the fleet says of one server.
type Server struct {
	// Server is the report of the worker in the best state: an initialized one
	// before one that starts before one that failed.
	schema.Server
	// Connected says that at least one live worker has it initialized.
	Connected bool
	// Workers has the report of every worker, by worker id.
	Workers []WorkerServer
	// BestSandbox is how a worker can run its calls in isolation, a ready one where
	// there is any; nil where no worker has one.
	BestSandbox *schema.Sandbox
	// HighestRisk is the highest riskLevel that a worker was told, 0 for none.
	HighestRisk int
	// PinMode is the strictest pin that a worker was told, schema.PinWarn or
	// PinQuarantine; "" for none.
	PinMode string
	// Offline says why no worker can run a call: the server is in the state error at all
	// of them; "" where one may. What an offline server has is not offered to models, and
	// its calls are refused at once.
	Offline string
}

// offline returns why no live worker can run a call of the server, "" where one may: one
// that starts, or that is waited for after its worker has gone, is not offline.
func (s *server) offline() string {
	v := &s.view
	if v.Connected || v.State != schema.StateError || !s.lost.IsZero() || v.BestSandbox != nil && v.BestSandbox.Ready {
		return ""
	}
	if slices.ContainsFunc(v.Workers, func(w WorkerServer) bool { return w.Report.OtherVersion }) {
		return "" // an upgrade is under way: it runs, and a stored call waits for a worker that can take it
	}
	if v.Error == "" {
		return "it is not running, and its worker reports no reason."
	}
	return v.Error
}

// Refusal returns why calls of the server are refused now, nil where they are not. The
// error is of KindUnavailable and retryable: workers start the server again and again.
func (s *Server) Refusal() error {
	if s.Offline == "" {
		return nil
	}
	return offlineError(s.ID, s.Offline)
}

// offlineRetry is when a caller may look again: the pauses between starts grow to minutes.
const offlineRetry = 5 * time.Second

func offlineError(id schema.ServerID, why string) error {
	return schema.Errorf(schema.KindUnavailable, "Server %q is offline, so the call did not start: %s", id, why).RetryableAfter(offlineRetry)
}

// WorkerServer is one worker's report of a server.
type WorkerServer struct {
	Worker   schema.WorkerID `json:"worker"`
	Draining bool            `json:"draining,omitempty"`
	Report   schema.Server   `json:"report"`
}

// Tool is a tool as callers may use it.
type Tool struct {
	*schema.Tool
	// Switch says whether it may be called; a tool that was never switched has
	// Enabled true.
	Switch switchtable.Switch
	// Change says why its definition is not accepted; nil where it is, or where the
	// definitions of its server may change.
	Change *Change
	// Safe says that a call may be repeated.
	Safe bool
	// Retry is the rule for repeating a call, nil for none. It counts for a tool only that is
	// Safe.
	Retry *schema.Retry
	// Timeout is the server's default for a call.
	Timeout time.Duration
	// Risk is the level the operator set for the server, 0 for none.
	Risk int
	// TrustAnnotations says that the operator lets the server's hints count.
	TrustAnnotations bool
	// Sandbox is how a worker can run the call in isolation, a ready one where there
	// is any; nil where no worker has one.
	Sandbox *schema.Sandbox
	// Offline says why no worker can run a call now, "" where one may; see [Server].
	Offline string
}

// rebuildLocked makes the view of servers from the workers' reports.
func (c *Catalog) rebuildLocked() {
	next := make(map[schema.ServerID]*server)
	workers := make([]*seenWorker, 0, len(c.workers))
	for _, w := range c.workers {
		workers = append(workers, w)
	}
	// The newest worker's definitions count: during an upgrade of a server the
	// new tools are shown as soon as one worker has them.
	slices.SortFunc(workers, func(a, b *seenWorker) int {
		if d := b.Started.Compare(a.Started); d != 0 {
			return d
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	ending := make(map[schema.ServerID]struct{})
	for _, w := range workers {
		for _, report := range w.Servers {
			if _, ok := c.removed[report.ID]; ok {
				ending[report.ID] = struct{}{}
				continue
			}
			s := next[report.ID]
			if s == nil {
				s = &server{view: Server{Server: report}}
				next[report.ID] = s
			}
			if rank(report.State) > rank(s.view.State) {
				s.view.Server = report
			}
			if report.Digest != "" && s.want == "" && !w.Draining {
				s.want, s.from = report.Digest, w.ID
			}
			s.view.PinMode = stricter(s.view.PinMode, report.Pin)
			s.view.HighestRisk = max(s.view.HighestRisk, report.Risk) // workers that differ: the highest counts
			if b := report.Sandbox; b != nil && !w.Draining && (s.view.BestSandbox == nil || b.Ready && !s.view.BestSandbox.Ready) {
				s.view.BestSandbox = b
			}
			s.view.Connected = s.view.Connected || report.State == schema.StateInitialized
			s.view.Workers = append(s.view.Workers, WorkerServer{Worker: w.ID, Draining: w.Draining, Report: report})
		}
	}
	used := make(map[string]bool)
	c.rememberLocked(next, used)
	c.removed = ending
	for id, s := range next {
		if d := c.defs[defsKey(id, s.want)]; d != nil {
			s.defs = d
		} else if old := c.servers[id]; old != nil {
			s.defs = old.defs
		}
		s.view.Offline = s.offline()
		c.pinLocked(id, s)
		for _, w := range s.view.Workers {
			used[defsKey(id, w.Report.Digest)] = true
		}
	}
	for key := range c.defs {
		if !used[key] {
			delete(c.defs, key)
		}
	}
	c.servers = next
	c.sets.forget()
	c.publishLocked()
}

// rememberLocked keeps servers whose last worker is gone, as failed. A server
// that a live worker has stopped to hold was taken away on purpose.
func (c *Catalog) rememberLocked(next map[schema.ServerID]*server, used map[string]bool) {
	now := time.Now()
	for id, old := range c.servers {
		if _, ok := c.removed[id]; ok || next[id] != nil || old.from == "" {
			continue
		}
		if w := c.workers[old.from]; w != nil && !w.Draining {
			continue
		}
		if old.lost.IsZero() {
			old.lost = now
		}
		if now.Sub(old.lost) > rememberFor {
			continue
		}
		report := old.view.Server
		report.State, report.PID, report.Sessions = schema.StateError, 0, 0
		report.Error = "no live worker runs it"
		s := &server{view: Server{Server: report, HighestRisk: old.view.HighestRisk, PinMode: old.view.PinMode}, want: old.want, from: old.from, lost: old.lost}
		next[id] = s
		used[defsKey(id, old.want)] = true
	}
}

func rank(s schema.InitializationState) int {
	switch s {
	case schema.StateInitialized:
		return 3
	case schema.StateStarting:
		return 2
	case schema.StateTimeout:
		return 1
	}
	return 0
}

// Servers returns every known server, sorted by id.
func (c *Catalog) Servers() []Server {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]Server, 0, len(c.servers))
	for _, s := range c.servers {
		all = append(all, s.view)
	}
	slices.SortFunc(all, func(a, b Server) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// Server returns one server. The error is of KindNotFound.
func (c *Catalog) Server(id schema.ServerID) (Server, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := c.servers[id]
	if s == nil {
		return Server{}, c.noServer(id)
	}
	return s.view, nil
}

// noServer is the error for a server that no worker has; c.mu is held. A front
// door that has just started may not have heard its workers yet, and says so: a
// restart must not look like a server that is gone.
func (c *Catalog) noServer(id schema.ServerID) error {
	if len(c.workers) == 0 && len(c.servers) == 0 && time.Since(c.opened) < firstWords {
		return schema.Errorf(schema.KindUnavailable, "This front door has just started and has not discovered any workers yet; the call did not start. Send it again.").RetryableAfter(time.Second)
	}
	return schema.Errorf(schema.KindNotFound, "There is no server %q. GET /servers lists the servers.", id)
}

// known returns the server with definitions, or the error for callers.
func (c *Catalog) known(id schema.ServerID) (*server, error) {
	s := c.servers[id]
	if s == nil {
		return nil, c.noServer(id)
	}
	if s.defs == nil {
		e := schema.Errorf(schema.KindUnavailable, "Server %q is not ready: its state is %q, and its tools are not yet known.", id, s.view.State)
		if s.view.Error != "" {
			e = schema.Errorf(schema.KindUnavailable, "Server %q is not ready: %s", id, s.view.Error)
		}
		e.Retryable, e.RetryAfter = true, time.Second
		return nil, e
	}
	return s, nil
}

// Definitions returns what the server offers, as it said it. The error is of
// KindNotFound, or KindUnavailable while nothing is known of its tools.
func (c *Catalog) Definitions(id schema.ServerID) (*schema.Definitions, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, err := c.known(id)
	if err != nil {
		return nil, err
	}
	return s.defs.raw, nil
}

// Tools returns the tools of one server in its own order. Errors as
// [Catalog.Definitions].
func (c *Catalog) Tools(id schema.ServerID) ([]Tool, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, err := c.known(id)
	if err != nil {
		return nil, err
	}
	tools := make([]Tool, 0, len(s.defs.order))
	for _, t := range s.defs.order {
		tools = append(tools, c.toolLocked(s, t))
	}
	return tools, nil
}

// Tool returns one tool. Errors as [Catalog.Definitions].
func (c *Catalog) Tool(id schema.ServerID, name string) (Tool, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, err := c.known(id)
	if err != nil {
		return Tool{}, err
	}
	t := s.defs.tools[name]
	if t == nil {
		return Tool{}, noTool(id, name)
	}
	return c.toolLocked(s, t), nil
}

// noTool is the error for a tool that a server does not have.
func noTool(id schema.ServerID, name string) error {
	return schema.Errorf(schema.KindNotFound, "Server %q has no tool %q. GET /servers/%s/tools lists its tools.", id, name, url.PathEscape(string(id)))
}

func (c *Catalog) toolLocked(s *server, t *schema.Tool) Tool {
	tool := Tool{Tool: t, Timeout: s.view.Timeout, Risk: s.view.HighestRisk, Sandbox: s.view.BestSandbox, Offline: s.view.Offline, TrustAnnotations: s.view.TrustAnnotations, Switch: switchtable.Switch{Server: t.Server, Tool: t.Name, Enabled: true}}
	if c.switches.Some() { // most have none, and each call comes by here
		if sw, ok := c.switches.Get(switchtable.Key(t.Server, t.Name)); ok {
			tool.Switch = sw
		}
		if sw := c.standing.Load().switchedOff(toolName{t.Server, t.Name}); sw != nil {
			tool.Switch = *sw
		}
	}
	tool.Change = s.pins.of(t.Name)
	tool.Safe = s.view.SafeToRepeat(t)
	tool.Retry = s.view.RetryOf(t.Name)
	return tool
}

// Refusal returns why the tool must not be called, nil where it is switched on and not in
// quarantine, and its server is not offline.
func (t *Tool) Refusal() error {
	switch {
	case !t.Switch.Enabled:
		return switchedOff(&t.Switch)
	case t.Quarantined():
		return t.Change.refusal(t.Server, t.Name)
	case t.Offline != "":
		return offlineError(t.Server, t.Offline)
	}
	return nil
}

// Offered says whether the tool is offered to models.
func (t *Tool) Offered() bool { return t.Switch.Enabled && t.Offline == "" && !t.Quarantined() }

// Unaccepted says that the definition was compared with the accepted one, and is another.
func (t *Tool) Unaccepted() bool { return t.Change != nil && !t.Change.pending }

// Quarantined says that the tool does not run, and is not listed, because nobody has
// accepted its definition.
func (t *Tool) Quarantined() bool { return t.Change != nil && t.Change.Quarantined }

func switchedOff(sw *switchtable.Switch) error {
	reason := sw.Reason
	if reason == "" {
		reason = "no reason was given"
	}
	return schema.Errorf(schema.KindDisabled, "Tool %q of server %q is disabled: %s", sw.Tool, sw.Server, reason)
}

// Schema returns the compiled input schema of the tool; it is compiled once for
// each definition. The error is of KindInternal when the server's schema itself
// is broken.
func (c *Catalog) Schema(t Tool) (*validate.Schema, error) {
	return c.schemas.Get(t.Digest, t.Input)
}

// Workers returns every live worker, sorted by id.
func (c *Catalog) Workers() []schema.Worker {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]schema.Worker, 0, len(c.workers))
	for _, w := range c.workers {
		all = append(all, w.Worker)
	}
	slices.SortFunc(all, func(a, b schema.Worker) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// Holders returns the workers that hold the server and take calls, by id.
func (c *Catalog) Holders(id schema.ServerID) []schema.Worker {
	return slices.DeleteFunc(c.Workers(), func(w schema.Worker) bool { return w.Draining || !holds(&w, id) })
}

// Routers is how many routers are alive, this one included.
func (c *Catalog) Routers() int { return c.peers.count() }

// RouterAlive says that a router announced itself within the last seconds.
func (c *Catalog) RouterAlive(id string) bool { return c.peers.routerAlive(id) }
