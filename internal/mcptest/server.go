package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// script holds the ways in which a mode differs from a well-behaved server.
type script struct {
	start         func(*server)                                                 // called before the first line is read
	deaf          bool                                                          // read, but do nothing
	mute          bool                                                          // tools/call is never answered
	ignoreUnknown bool                                                          // unknown methods are not answered
	changing      bool                                                          // the tool list changes after a call
	versions      bool                                                          // the tool is read from a file
	extraTool     string                                                        // one more tool definition
	answer        func(s *server, id json.RawMessage, body string, modern bool) // answers a call; if nil, correctly
	end           func(*server)                                                 // called after stdin ended and all calls have ended
}

// server is one scripted server; serve runs it to the end.
type server struct {
	mode  string
	opts  options
	act   script
	out   output
	tasks sync.WaitGroup // running calls, and the flood

	mu      sync.Mutex
	running map[string]context.CancelFunc // by request id
	listen  json.RawMessage               // id of the open subscriptions/listen
	changed bool
	version string // version of the tool in mode Versions
}

func newServer(mode string, o options, act script, w io.Writer) *server {
	return &server{mode: mode, opts: o, act: act, out: output{w: w}, running: map[string]context.CancelFunc{}}
}

// serve reads until in ends, and returns when every call has also ended.
func (s *server) serve(in io.Reader) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.act.start != nil {
		s.act.start(s)
	}
	if s.act.versions {
		first := versionIn(s.opts.Folder) // read before the first answer, because a test changes it right after that
		s.tasks.Go(func() { s.followVersion(ctx, first) })
	}
	if s.opts.Flood {
		s.tasks.Go(func() { s.flood(ctx) })
	}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if m, ok := parseMessage(line); ok && !s.act.deaf {
			s.take(ctx, m)
		}
		if err != nil {
			break
		}
	}
	cancel()
	s.tasks.Wait()
	if s.act.end != nil {
		s.act.end(s)
	}
}

// take handles one message. Calls run concurrently with the reading, everything else does not.
func (s *server) take(ctx context.Context, m message) {
	if m.ID == nil {
		s.notified(m)
		return
	}
	if !s.speaks(m) {
		return
	}
	switch m.Method {
	case mcpwire.MethodInitialize:
		s.out.result(m.ID, s.initializeResult(m))
	case mcpwire.MethodDiscover:
		s.out.result(m.ID, s.discoverResult())
	case mcpwire.MethodPing:
		s.out.result(m.ID, "{}")
	case mcpwire.MethodListTools:
		s.list(m, "tools", s.tools())
	case schema.MethodCallTool:
		s.startCall(ctx, m)
	case mcpwire.MethodListen:
		s.startListen(m)
	default:
		if !s.serveData(m) {
			s.unknown(m)
		}
	}
}

// speaks reports whether the method exists in the server's eras. If not, it answers the request with
// an error.
func (s *server) speaks(m message) bool {
	inModern := s.opts.Era == modernEra || s.opts.Era == bothEras && m.modern
	switch m.Method {
	case mcpwire.MethodInitialize, mcpwire.MethodPing:
		if inModern {
			s.unknown(m)
			return false
		}
	case mcpwire.MethodDiscover, mcpwire.MethodListen:
		if !inModern {
			s.unknown(m)
			return false
		}
	}
	if s.opts.Era == modernEra && !m.modern {
		s.out.fault(m.ID, rpcFault{code: mcpwire.CodeInvalidParams, message: "the request lacks the protocol version " + mcpwire.Modern + " in its _meta"})
		return false
	}
	return true
}

func (s *server) unknown(m message) {
	if !s.act.ignoreUnknown {
		s.out.fault(m.ID, rpcFault{code: mcpwire.CodeMethodNotFound, message: "Method not found"})
	}
}

// list answers a list request on one page.
func (s *server) list(m message, key, items string) {
	if m.modern {
		s.out.result(m.ID, fmt.Sprintf(`{"resultType":"complete","ttlMs":0,"cacheScope":"public",%q:[%s]}`, key, items))
		return
	}
	s.out.result(m.ID, fmt.Sprintf(`{%q:[%s]}`, key, items))
}

func (s *server) capabilities() string {
	return fmt.Sprintf(`{"tools":{"listChanged":%t},"resources":{},"prompts":{}}`, s.act.changing)
}

func (s *server) info() string {
	return `{"name":` + quote("mcptest-"+s.mode) + `,"version":"1.0.0"}`
}

func (s *server) initializeResult(m message) string {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(m.Params, &p)
	version := p.ProtocolVersion
	if !slices.Contains(mcpwire.Legacy(), version) {
		version = mcpwire.LegacyNewest
	}
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s}`, version, s.capabilities(), s.info())
}

func (s *server) discoverResult() string {
	versions := `"` + mcpwire.Modern + `"`
	if s.opts.Era == bothEras {
		versions += `,"` + mcpwire.LegacyNewest + `"`
	}
	return fmt.Sprintf(`{"resultType":"complete","ttlMs":0,"cacheScope":"public","supportedVersions":[%s],"capabilities":%s,"_meta":{"`+mcpwire.MetaServerInfo+`":%s}}`,
		versions, s.capabilities(), s.info())
}

// notified handles the only relevant notification.
func (s *server) notified(m message) {
	if m.Method != mcpwire.NotifyCancelled {
		return
	}
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.running[string(p.RequestID)]; ok {
		cancel()
	}
	if s.listen != nil && string(s.listen) == string(p.RequestID) {
		s.listen = nil
	}
}

// startListen acknowledges the subscription. The request remains unanswered until it is cancelled.
func (s *server) startListen(m message) {
	s.mu.Lock()
	s.listen = m.ID
	s.mu.Unlock()
	s.out.line(`{"jsonrpc":"2.0","method":"`+mcpwire.NotifyAcknowledged+`","params":{"notifications":{"toolsListChanged":%t},"_meta":{"`+mcpwire.MetaSubscriptionID+`":%s}}}`,
		s.act.changing, m.ID)
}

// change changes the tool list once, and notifies the client as its era requires.
func (s *server) change(modern bool) {
	s.mu.Lock()
	first, listen := !s.changed, s.listen
	s.changed = true
	s.mu.Unlock()
	switch {
	case !first:
	case !modern:
		s.out.line(`{"jsonrpc":"2.0","method":"` + mcpwire.NotifyToolsChanged + `"}`)
	case listen != nil:
		s.out.line(`{"jsonrpc":"2.0","method":"`+mcpwire.NotifyToolsChanged+`","params":{"_meta":{"`+mcpwire.MetaSubscriptionID+`":%s}}}`, listen)
	}
}

// tools returns the current definitions, separated by commas.
func (s *server) tools() string {
	if s.act.versions {
		return s.versionedTool()
	}
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	defs := definitions()
	if changed {
		defs[0] = changedEcho
	}
	if s.act.extraTool != "" {
		defs = append(defs, s.act.extraTool)
	}
	return strings.Join(defs, ",")
}
