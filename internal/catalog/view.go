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

// Server is the combined view of one server in the fleet.
type Server struct {
	// Server is the report of the worker in the best state: initialized before starting
	// before failed.
	schema.Server
	// Connected reports that at least one live worker has initialized it.
	Connected bool
	// Workers holds the reports of all workers, by worker id.
	Workers []WorkerServer
	// BestSandbox is a sandbox in which a worker can run its calls, preferably a ready one. It
	// is nil if no worker has one.
	BestSandbox *schema.Sandbox
	// HighestRisk is the highest riskLevel in the configuration of any worker. 0 means none.
	HighestRisk int
	// PinMode is the strictest pin in the configuration of any worker: schema.PinWarn or
	// PinQuarantine. "" means none.
	PinMode string
	// Offline is the reason why no worker can run a call: the server is in the error state on
	// all of them. It is "" if a worker may run one. The tools of an offline server are not
	// offered to models, and its calls are refused at once.
	Offline string
}

// offline returns the reason why no live worker can run a call of the server, or "" if one may. A
// server that is starting, or whose lost worker may return, is not offline.
func (s *server) offline() string {
	v := &s.view
	if v.Connected || v.State != schema.StateError || !s.lost.IsZero() || v.BestSandbox != nil && v.BestSandbox.Ready {
		return ""
	}
	if slices.ContainsFunc(v.Workers, func(w WorkerServer) bool { return w.Report.OtherVersion }) {
		return "" // during an upgrade the server runs, and a stored call waits for a worker that can take it
	}
	if v.Error == "" {
		return "it is not running, and its worker reports no reason."
	}
	return v.Error
}

// Refusal returns the error for calls of an offline server, else nil. The error is of
// KindUnavailable and retryable, because workers keep restarting the server.
func (s *Server) Refusal() error {
	if s.Offline == "" {
		return nil
	}
	return offlineError(s.ID, s.Offline)
}

// offlineRetry is the retry delay for callers. The pauses between starts grow to minutes.
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

// Tool is a tool with the state that decides how it can be called.
type Tool struct {
	*schema.Tool
	// Switch is the state of the tool's switch. Enabled is true for a tool that was never
	// switched.
	Switch switchtable.Switch
	// Change is the reason why the definition is not accepted. It is nil if it is accepted, or
	// if the server has no pin.
	Change *Change
	// Safe reports that a call may be repeated.
	Safe bool
	// Retry is the retry policy, nil if there is none. It applies only if Safe is set.
	Retry *schema.Retry
	// Timeout is the server's default for a call.
	Timeout time.Duration
	// Risk is the level that the operator set for the server. 0 means none.
	Risk int
	// TrustAnnotations reports that the operator trusts the server's annotations.
	TrustAnnotations bool
	// Sandbox is a sandbox in which a worker can run the call, preferably a ready one. It is
	// nil if no worker has one.
	Sandbox *schema.Sandbox
	// Offline is the reason why no worker can run a call now, or ""; see [Server].
	Offline string
}

// rebuildLocked builds the view of servers from the workers' reports. The caller holds c.mu.
func (c *Catalog) rebuildLocked() {
	next := make(map[schema.ServerID]*server)
	workers := make([]*seenWorker, 0, len(c.workers))
	for _, w := range c.workers {
		workers = append(workers, w)
	}
	// The definitions of the newest worker win, so that during an upgrade of a server the new
	// tools are shown as soon as one worker has them.
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
			if _, ok := c.addedIDs[report.ID]; report.Added && !ok {
				continue // it is being added, or was removed while its worker was disconnected
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
			s.view.HighestRisk = max(s.view.HighestRisk, report.Risk) // if workers differ, the highest applies
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

// rememberLocked keeps servers whose last worker disconnected, in the error state. It does not keep
// a server that a live worker no longer runs, because that was removed deliberately.
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

// noServer returns the error for a server that no worker has. A front door that has just started
// may not have received its workers' announcements yet and returns KindUnavailable, so that its
// restart does not look like a removed server. The caller holds c.mu.
func (c *Catalog) noServer(id schema.ServerID) error {
	if len(c.workers) == 0 && len(c.servers) == 0 && time.Since(c.opened) < discoveryGrace {
		return schema.Errorf(schema.KindUnavailable, "This front door has just started and has not discovered any workers yet; the call did not start. Send it again.").RetryableAfter(time.Second)
	}
	return schema.Errorf(schema.KindNotFound, "There is no server %q. GET /servers lists the servers.", id)
}

// known returns the server if its definitions are known, else the error for callers.
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

// Definitions returns the server's definitions, exactly as it sent them. The error is of
// KindNotFound, or of KindUnavailable while its tools are not known.
func (c *Catalog) Definitions(id schema.ServerID) (*schema.Definitions, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, err := c.known(id)
	if err != nil {
		return nil, err
	}
	return s.defs.raw, nil
}

// Tools returns the tools of one server in the server's order. Errors are those of
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

// Tool returns one tool. Errors are those of [Catalog.Definitions], or of KindNotFound.
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

// noTool returns the error for a tool that a server does not have.
func noTool(id schema.ServerID, name string) error {
	return schema.Errorf(schema.KindNotFound, "Server %q has no tool %q. GET /servers/%s/tools lists its tools.", id, name, url.PathEscape(string(id)))
}

func (c *Catalog) toolLocked(s *server, t *schema.Tool) Tool {
	tool := Tool{Tool: t, Timeout: s.view.Timeout, Risk: s.view.HighestRisk, Sandbox: s.view.BestSandbox, Offline: s.view.Offline, TrustAnnotations: s.view.TrustAnnotations, Switch: switchtable.Switch{Server: t.Server, Tool: t.Name, Enabled: true}}
	if c.switches.Some() { // most fleets have no switches, and this runs for each call
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

// Refusal returns the error for calls of a tool that is switched off, quarantined or offline. It
// returns nil if the tool may be called.
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

// Offered reports whether the tool is offered to models.
func (t *Tool) Offered() bool { return t.Switch.Enabled && t.Offline == "" && !t.Quarantined() }

// Unaccepted reports whether the definition was compared with the accepted one and differs.
func (t *Tool) Unaccepted() bool { return t.Change != nil && !t.Change.pending }

// Quarantined reports whether the tool neither runs nor is listed because its definition has not
// been accepted.
func (t *Tool) Quarantined() bool { return t.Change != nil && t.Change.Quarantined }

func switchedOff(sw *switchtable.Switch) error {
	reason := sw.Reason
	if reason == "" {
		reason = "no reason was given"
	}
	return schema.Errorf(schema.KindDisabled, "Tool %q of server %q is disabled: %s", sw.Tool, sw.Server, reason)
}

// Schema returns the compiled input schema of the tool. Compiled schemas are cached by definition.
// The error is of KindInternal if the server's schema is invalid.
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

// Holders returns the workers that run the server and accept calls, sorted by id.
func (c *Catalog) Holders(id schema.ServerID) []schema.Worker {
	return slices.DeleteFunc(c.Workers(), func(w schema.Worker) bool { return w.Draining || !holds(&w, id) })
}

// Routers returns the number of live routers, this one included.
func (c *Catalog) Routers() int { return c.peers.count() }

// RouterAlive reports whether a router announced itself within the last seconds.
func (c *Catalog) RouterAlive(id string) bool { return c.peers.routerAlive(id) }

// RouterMayLive reports whether a router is alive, or may be: it was heard within the grace period, of at
// most a minute, or this front door could not hear others for that long. A grace period of 0 means that
// of [Catalog.RouterAlive].
func RouterMayLive(c *Catalog, id string, grace time.Duration) bool {
	return c.peers.routerMayLive(id, grace)
}
