package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	settleTime = 50 * time.Millisecond // changes come in bursts
	pollEvery  = 60 * time.Second      // remote servers may lose the stream that reports changes
	maxPages   = 1000
)

// offers keeps the definitions of a pool's server up to date.
type offers struct {
	pool    *Pool
	wake    chan struct{} // signaled when a list may have changed
	headers atomic.Pointer[paramHeaders]

	defs   *schema.Definitions // nil until they were first read; guarded by pool.mu
	digest string              // of defs; guarded by pool.mu
}

// run is the goroutine that reads the lists again when they may have changed.
func (o *offers) run() {
	p := o.pool
	var poll, retry <-chan time.Time
	if p.cfg.Spec.Type != "stdio" && p.cfg.Native == nil && p.cfg.Program == nil && !p.cfg.Attached {
		ticker := time.NewTicker(pollEvery)
		defer ticker.Stop()
		poll = ticker.C
	}
	if p.cfg.Pinned { // a session whose lists could not be read takes no calls
		ticker := time.NewTicker(pinRetry)
		defer ticker.Stop()
		retry = ticker.C
	}
	var failing warnings.Spacing
	for {
		all := false
		select {
		case <-p.ctx.Done():
			return
		case <-o.wake:
			if !sleep.For(settleTime, p.ctx.Done()) {
				return
			}
		case <-poll:
			all = true
		case <-retry:
		}
		for _, s := range o.changedSessions(all) {
			ctx, cancel := context.WithTimeout(p.ctx, p.cfg.StartTimeout)
			read := o.read
			if p.programs != nil {
				read = p.programs.readAgain
			}
			err := read(ctx, s)
			cancel()
			if err != nil && p.cfg.Pinned {
				s.changes.Store(true)
			}
			if err == nil {
				failing = warnings.Spacing{}
			} else if notLogged, ok := failing.Due(time.Now()); ok && p.ctx.Err() == nil {
				p.log.Warn("reading the lists of the server failed; the last known lists stay in use", "error", bounded(err.Error()), "not_logged", notLogged)
			}
		}
	}
}

// changedSessions returns the sessions that reported a change, including those that are being
// opened. If one is true and no session reported a change, it returns one live session.
func (o *offers) changedSessions(one bool) []*session {
	p := o.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*session
	for s := range p.all {
		if s.changes.Swap(false) {
			out = append(out, s)
		}
	}
	if one && len(out) == 0 && len(p.live) > 0 {
		out = append(out, p.live[0])
	}
	return out
}

// changed schedules a read of the lists of the sessions that reported a change.
func (o *offers) changed() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// read reads the definitions over the session and stores them in the pool.
func (o *offers) read(ctx context.Context, s *session) error {
	p := o.pool
	s.reading.Lock()
	defer s.reading.Unlock()
	asOf := s.pins.begin(&p.cfg)
	defs, err := readDefinitions(ctx, s)
	if err != nil {
		return err
	}
	if _, ok := s.link.(*remoteLink); ok {
		o.headers.Store(newParamHeaders(defs))
	}
	sum := defs.Digest()
	p.mu.Lock()
	same := o.digest == sum
	if !same {
		o.defs, o.digest = defs, sum
	}
	p.mu.Unlock()
	if !same {
		p.changed()
	}
	if p.cfg.Pinned {
		if s.pins.set(defs, sum, asOf, same) {
			o.doubtOthers(s)
		}
		p.pump()
	}
	return nil
}

// list describes one kind of list that a server offers.
type list struct {
	method string
	member string // member of the result
	key    string // member that must be unique
	into   *[]json.RawMessage
	must   bool // a failure fails all lists
}

// readDefinitions reads the lists that the server declares, concurrently.
func readDefinitions(ctx context.Context, s *session) (*schema.Definitions, error) {
	defs := &schema.Definitions{About: introduction(s)}
	var lists []list
	if caps := s.about.Capabilities; caps != nil {
		if caps.Tools != nil {
			lists = append(lists, list{mcpwire.MethodListTools, "tools", "name", &defs.Tools, true})
		}
		if caps.Resources != nil {
			lists = append(lists,
				list{mcpwire.MethodListResources, "resources", "uri", &defs.Resources, false},
				list{mcpwire.MethodListResourceTemplates, "resourceTemplates", "uriTemplate", &defs.ResourceTemplates, false})
		}
		if caps.Prompts != nil {
			lists = append(lists, list{mcpwire.MethodListPrompts, "prompts", "name", &defs.Prompts, false})
		}
	}
	errs := make([]error, len(lists))
	var work sync.WaitGroup
	for i, l := range lists {
		work.Go(func() { errs[i] = readList(ctx, s, l) })
	}
	work.Wait()
	for i, l := range lists {
		if errs[i] == nil {
			continue
		}
		var fault *schema.Error
		if errors.As(errs[i], &fault) && fault.RPC != nil && !l.must {
			if fault.RPC.Code != -32601 { // some servers declare resources and have no templates
				s.pool.log.Warn("the server did not return one of its lists", "method", l.method, "code", fault.RPC.Code)
			}
			continue
		}
		if fault != nil && fault.RPC != nil {
			// The text of fault is about a call, and lacks the server's message. The message is
			// safe to include here: the request has no arguments that it could repeat.
			return nil, fmt.Errorf("reading %s: the server answered with the JSON-RPC error %d: %s", l.method, fault.RPC.Code, fault.RPC.Message)
		}
		return nil, fmt.Errorf("reading %s: %w", l.method, errs[i])
	}
	return defs, nil
}

// maxIntroduction limits the metadata of a server, in bytes. Larger metadata is left out.
const maxIntroduction = 256 << 10

// introduction returns the metadata of the server; see [schema.Definitions].
func introduction(s *session) json.RawMessage {
	about := struct {
		Info         *mcp.Implementation `json:"serverInfo,omitempty"`
		Instructions string              `json:"instructions,omitempty"`
		Extensions   map[string]any      `json:"extensions,omitempty"`
	}{Info: s.about.ServerInfo, Instructions: s.about.Instructions}
	if caps := s.about.Capabilities; caps != nil {
		about.Extensions = caps.Extensions
	}
	raw, err := json.Marshal(about)
	if err != nil || len(raw) > maxIntroduction {
		s.pool.log.Warn("omitted the server information of initialize, which is too large", "bytes", len(raw), "most", maxIntroduction)
		return nil
	}
	return raw
}

// readList reads all pages of one list.
func readList(ctx context.Context, s *session, l list) error {
	found := []json.RawMessage{}
	seen := make(map[string]bool)
	var skipped skippedEntries
	size := 0
	var params []byte
	cursors := make(map[string]bool)
	for range maxPages {
		page, err := s.ask(ctx, l.method, params)
		if err != nil {
			return err
		}
		if size += len(page); size > s.pool.cfg.MaxResult {
			return fmt.Errorf("it exceeds the limit of %d bytes", s.pool.cfg.MaxResult)
		}
		page = rawjson.Readable(page)
		var items []json.RawMessage
		var cursor []byte
		rawjson.Members(page, func(key string, value []byte) {
			switch key {
			case l.member:
				err = json.Unmarshal(value, &items)
			case "nextCursor":
				cursor = value
			}
		})
		if err != nil {
			return errors.New("it is not an array")
		}
		for _, item := range items {
			switch name := member(item, l.key); {
			case name == "":
				skipped.nameless++
			case seen[name]:
				skipped.repeated, skipped.name = skipped.repeated+1, name
			default:
				seen[name] = true
				found = append(found, item)
			}
		}
		// Most clients treat an empty cursor as the end of the list, and so does this one.
		if len(cursor) == 0 || cursor[0] != '"' || string(cursor) == `""` {
			*l.into = found
			skipped.log(s, l)
			return nil
		}
		if cursors[string(cursor)] {
			return errors.New("its pages form a cycle")
		}
		cursors[string(cursor)] = true
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return fmt.Errorf("it has more than %d pages", maxPages)
}

// skippedEntries counts the entries of a list that are left out. A list may have millions of them, so
// they are not logged one by one.
type skippedEntries struct {
	nameless, repeated int
	name               string // one of the repeated names
}

func (k *skippedEntries) log(s *session, l list) {
	if k.nameless > 0 {
		s.pool.log.Warn("skipped entries without a name", "method", l.method, "entries", k.nameless)
	}
	if k.repeated > 0 {
		s.pool.log.Warn("skipped entries with the name of another one", "method", l.method, "entries", k.repeated, "name", bounded(k.name))
	}
}

// member returns the string value of a member of an object, or "" if there is none.
func member(object []byte, key string) string {
	var raw []byte
	rawjson.Members(object, func(k string, value []byte) {
		if k == key {
			raw = value
		}
	})
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
