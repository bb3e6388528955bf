package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/store/pintable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// pinsWithin limits one attempt to open the table of accepted definitions, pinWithin one
	// write to it.
	pinsWithin = 10 * time.Second
	pinWithin  = 5 * time.Second
	// pinHeadroom is the space, in bytes, that a NATS message needs in addition to a row.
	pinHeadroom = 4 << 10
)

// Change is the reason why the definition of a tool is not accepted. It is immutable.
type Change struct {
	// New reports that no definition of the tool was accepted. Otherwise Fields lists the
	// members that differ from the accepted definition.
	New    bool
	Fields []string
	// Quarantined reports that the tool does not run and is not listed.
	Quarantined bool

	digest  string // of the definition that is not accepted
	pending bool   // the definitions of the server have not been compared yet
}

// Text describes the difference in words, for people.
func (c *Change) Text() string {
	switch {
	case c.pending:
		return "its definition is not compared yet"
	case c.New:
		return "it is new, and nobody has accepted its definition"
	}
	return "its definition changed after it was accepted (" + strings.Join(c.Fields, ", ") + ")"
}

// refusal returns the error for calls of a quarantined tool.
func (c *Change) refusal(server schema.ServerID, tool string) error {
	if c.pending {
		return schema.Errorf(schema.KindUnavailable, "The tool definitions of server %q were not compared with the accepted ones yet, and it has pin: quarantine; the call did not start. Send it again.", server).RetryableAfter(time.Second)
	}
	return schema.Errorf(schema.KindDisabled, "Tool %q of server %q is in quarantine: %s. An operator can review it with `callyard tools diff` and accept it with `callyard tools accept`.", tool, server, c.Text())
}

// pinned is the comparison of a server's definitions with the accepted ones. It is immutable.
type pinned struct {
	mode     string             // schema.PinWarn or PinQuarantine
	recorded bool               // and the current definitions are known
	accepted map[string]string  // digests of accepted current definitions, by tool
	changed  map[string]*Change // all other tools, if recorded
}

// unrecorded is the change of every tool of a quarantined server whose definitions are not recorded
// or not known.
var unrecorded = &Change{Quarantined: true, pending: true}

// of returns the reason why a tool is not accepted, or nil if it is.
func (p *pinned) of(tool string) *Change {
	switch {
	case p == nil:
		return nil
	case !p.recorded && p.mode == schema.PinQuarantine:
		return unrecorded
	}
	return p.changed[tool]
}

// mayLeave returns nil if a call that was checked against the definition with this digest may be
// sent, else the reason. It is called only for servers in quarantine mode.
func (p *pinned) mayLeave(server schema.ServerID, tool, digest string) error {
	accepted, ok := p.accepted[tool]
	switch {
	case ok && accepted == digest:
		return nil
	case ok:
		return schema.Errorf(schema.KindConflict, "The definition of tool %q of server %q changed after the call was checked; it was not run. Send the call again.", tool, server)
	}
	if c := p.of(tool); c != nil {
		return c.refusal(server, tool)
	}
	return schema.Errorf(schema.KindConflict, "Server %q does not have the tool %q any more; the call was not run.", server, tool)
}

// names returns the tools that are not accepted, sorted.
func (p *pinned) names() []string { return slices.Sorted(maps.Keys(p.changed)) }

// compare compares the definitions of a server with its row of the table. d is nil while the
// definitions are not known; row is nil if none were recorded.
func compare(mode string, row *pintable.Server, d *definitions) *pinned {
	p := &pinned{mode: mode, recorded: row != nil && d != nil, accepted: map[string]string{}, changed: map[string]*Change{}}
	if !p.recorded {
		return p
	}
	for _, t := range d.order {
		pin, ok := row.Tools[t.Name]
		switch {
		case ok && pin.Digest == t.Digest:
			p.accepted[t.Name] = t.Digest
		case ok:
			p.changed[t.Name] = &Change{Fields: differing(pin.Definition, t.Raw), Quarantined: mode == schema.PinQuarantine, digest: t.Digest}
		default:
			p.changed[t.Name] = &Change{New: true, Quarantined: mode == schema.PinQuarantine, digest: t.Digest}
		}
	}
	return p
}

// fields lists the members of a definition that MCP defines, in the order in which they are
// reported. The names of other members come from the server and are not passed on.
var fields = []string{"title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta"}

const (
	otherFields = "other members"
	spelling    = "order or spelling of members" // used if nothing else differs
)

// differing returns the names of the members that differ between two definitions. The result is
// never empty.
func differing(a, b json.RawMessage) []string {
	was, is := membersOf(a), membersOf(b)
	var out []string
	for _, name := range fields {
		if was[name] != is[name] {
			out = append(out, name)
		}
		delete(was, name)
		delete(is, name)
	}
	if !maps.Equal(was, is) {
		out = append(out, otherFields)
	}
	if out == nil {
		return []string{spelling}
	}
	return out
}

func membersOf(object json.RawMessage) map[string]string {
	all := map[string]string{}
	rawjson.Members(object, func(name string, value []byte) { all[name] = string(value) })
	return all
}

// pinModes lists the modes that compare definitions, in increasing strictness.
var pinModes = []string{schema.PinWarn, schema.PinQuarantine}

// stricter returns the stricter of two modes. "" means no mode.
func stricter(a, b string) string {
	if slices.Index(pinModes, b) > slices.Index(pinModes, a) {
		return b
	}
	return a
}

// openPins opens the table of accepted definitions. If that fails, calls of quarantined servers are
// refused, and the pinner tries again while any server needs the table.
func (c *Catalog) openPins(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pinsWithin)
	defer cancel()
	table, err := pintable.Open(ctx, c.conn, c.pinsChanged)
	if err != nil {
		c.log.Warn("accepted tool definitions cannot be read, so calls of servers with pin: quarantine are refused: run `callyard init`, and update NATS to the permissions of this version", "error", err)
		return
	}
	c.pins.Store(table)
	c.pinsChanged()
}

// pinsChanged updates the view after definitions were recorded or accepted by any front door.
func (c *Catalog) pinsChanged() {
	c.mu.Lock()
	for id, s := range c.servers {
		c.pinLocked(id, s)
	}
	c.publishLocked()
	c.mu.Unlock()
	c.wakeReader()
	c.changes.notify()
}

// pinLocked compares the definitions of a server with the accepted ones.
func (c *Catalog) pinLocked(id schema.ServerID, s *server) {
	if s.pins = nil; s.view.PinMode == "" {
		return
	}
	var row *pintable.Server
	if table := c.pins.Load(); table != nil {
		if r, ok := table.Get(pintable.Key(id)); ok {
			row = &r
		}
	}
	s.pins = compare(s.view.PinMode, row, s.defs)
}

// pinner records the definitions of servers on first use and logs changes. It is not safe for
// concurrent use.
type pinner struct {
	c      *Catalog
	logged map[schema.ServerID]string // the state that was last logged, by server
}

// run opens the table if needed, records new servers and logs changes.
func (p *pinner) run(ctx context.Context) {
	c := p.c
	c.mu.RLock()
	need := false
	for _, s := range c.servers {
		need = need || s.pins != nil
	}
	c.mu.RUnlock()
	if !need {
		return
	}
	if c.pins.Load() == nil {
		c.openPins(ctx)
	}
	if table := c.pins.Load(); table != nil {
		for _, row := range p.due() {
			if err := p.record(ctx, table, row); err != nil && ctx.Err() == nil {
				c.log.Warn("recording the tool definitions of a server failed", "server", row.ID, "error", err)
			}
		}
	}
	p.logChanges()
}

// due returns rows for servers whose definitions are known but not recorded.
func (p *pinner) due() []pintable.Server {
	c := p.c
	c.mu.RLock()
	defer c.mu.RUnlock()
	var due []pintable.Server
	for id, s := range c.servers {
		if s.pins == nil || s.pins.recorded || s.defs == nil || c.defs[defsKey(id, s.want)] != s.defs {
			continue
		}
		now := time.Now().UTC()
		row := pintable.Server{ID: id, Recorded: now, Tools: make(map[string]pintable.Pin, len(s.defs.order))}
		for _, t := range s.defs.order {
			row.Tools[t.Name] = pintable.Pin{Definition: t.Raw, Digest: t.Digest, At: now}
		}
		due = append(due, row)
	}
	return due
}

// record records a server. If another front door recorded it first, that record wins.
func (p *pinner) record(ctx context.Context, table *bus.Table[pintable.Server], row pintable.Server) error {
	ctx, cancel := context.WithTimeout(ctx, pinWithin)
	defer cancel()
	if err := checkRowSize(p.c, &row); err != nil {
		return err
	}
	_, err := table.Create(ctx, row)
	switch {
	case errors.Is(err, bus.ErrConflict):
		if _, _, err := table.Fresh(ctx, pintable.Key(row.ID)); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		p.c.log.Info("recorded the tool definitions of a server", "server", row.ID, "tools", len(row.Tools))
	}
	p.c.pinsChanged()
	return nil
}

// checkRowSize returns an error if a row is too large for a NATS message.
func checkRowSize(c *Catalog, row *pintable.Server) error {
	text, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if most := c.conn.MaxPayload() - pinHeadroom; len(text) > most {
		return schema.Errorf(schema.KindTooLarge, "The tool definitions of server %q have %d bytes, and a message of NATS takes %d; raise max_payload of the NATS server.", row.ID, len(text), most)
	}
	return nil
}

// logChanges logs the definitions that are not accepted, once for each state of a server.
func (p *pinner) logChanges() {
	c := p.c
	type line struct {
		id    schema.ServerID
		mode  string
		tools []string
	}
	var lines []line
	c.mu.RLock()
	for id, s := range c.servers {
		if s.pins == nil {
			continue
		}
		var now strings.Builder
		names := s.pins.names()
		for _, tool := range names {
			now.WriteString(tool + "\x00" + s.pins.changed[tool].digest + "\x00")
		}
		if p.logged[id] != now.String() && len(names) > 0 {
			lines = append(lines, line{id, s.pins.mode, names})
		}
		p.logged[id] = now.String()
	}
	for id := range p.logged {
		if c.servers[id] == nil {
			delete(p.logged, id)
		}
	}
	c.mu.RUnlock()
	for _, l := range lines {
		c.log.Warn("tools have definitions that nobody has accepted; `callyard tools diff` shows them", "server", l.id, "pin", l.mode, "count", len(l.tools), "tools", l.tools[:min(len(l.tools), maxLoggedTools)])
	}
}

// maxLoggedTools limits the tool names in a log line.
const maxLoggedTools = 20

// ChangedTools returns the number of tools whose definition is not accepted, for each
// server that has pin set.
func (c *Catalog) ChangedTools() map[schema.ServerID]int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make(map[schema.ServerID]int)
	for id, s := range c.servers {
		if s.pins != nil {
			all[id] = len(s.pins.changed)
		}
	}
	return all
}

// leaveOut appends the quarantined tools to those that are switched off.
func (p *pinned) leaveOut(off []string) []string {
	if p == nil || p.mode != schema.PinQuarantine {
		return off
	}
	return append(off, p.names()...)
}
