// Package slacktest provides a local Slack server for tests: the Web API methods that the approver
// calls, Socket Mode, and simulated clicks, with the documented shapes and real signatures. It can
// fail on demand. It must not be used outside tests.
package slacktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// IDs in the workspace of the tests.
const (
	Team          = "T0000TEST"
	App           = "A0000TEST"
	BotToken      = "xoxb-0000-test"   //nolint:gosec // of a workspace that does not exist
	AppToken      = "xapp-1-0000-test" //nolint:gosec // of a workspace that does not exist
	SigningSecret = "8f742231b10e8888abcd99yyyzzz85a5"
)

// Mode selects how the server responds.
type Mode int

// Modes.
const (
	Well    Mode = iota
	Down         // responds 503 to everything
	Broken       // closes connections without a response
	Slow         // takes two seconds for each response
	Limited      // responds 429, with [RetryAfter]
)

// RetryAfter is the Retry-After of the mode Limited.
const RetryAfter = 3 * time.Second

// Message is a message in a channel.
type Message struct {
	Channel, TS, Thread string
	Text                string
	Blocks              string // as sent
	User                string // the recipient of an ephemeral message
	Edits               int
}

// Button returns the value of the card's element for an action. For a menu it is the nth option. ok
// is false if the card has no such element.
func (m Message) Button(action string, n int) (value, text string, ok bool) {
	var blocks []struct {
		Elements []struct {
			ActionID string `json:"action_id"`
			Value    string `json:"value"`
			Options  []struct {
				Value string `json:"value"`
				Text  struct {
					Text string `json:"text"`
				} `json:"text"`
			} `json:"options"`
		} `json:"elements"`
	}
	_ = json.Unmarshal([]byte(m.Blocks), &blocks) // a message without blocks has no buttons
	for _, b := range blocks {
		for _, e := range b.Elements {
			switch {
			case e.ActionID != action:
			case len(e.Options) > n:
				return e.Options[n].Value, e.Options[n].Text.Text, true
			case len(e.Options) == 0:
				return e.Value, "", true
			}
		}
	}
	return "", "", false
}

// Server is a Slack server on loopback. It is safe for concurrent use.
type Server struct {
	// URL is the address of the Web API, for api_url.
	URL string

	t    testing.TB
	http *httptest.Server

	mu         sync.Mutex
	mode       Mode
	held       map[string]chan struct{} // methods that block until it is closed
	changed    chan struct{}
	messages   []*Message
	ephemerals []Message
	views      []string
	acks       map[string]string // payloads of the acknowledgements, by envelope
	calls      map[string]int
	next       int
	noBlocks   bool
	sockets    map[*websocket.Conn]*sync.Mutex
	done       chan struct{}
	work       sync.WaitGroup
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t: t, changed: make(chan struct{}), acks: map[string]string{}, calls: map[string]int{},
		held: map[string]chan struct{}{}, sockets: map[*websocket.Conn]*sync.Mutex{}, done: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", s.method)
	mux.HandleFunc("/link", s.socket)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL + "/api/"
	t.Cleanup(func() {
		close(s.done)
		s.Feel(Well)
		s.Drop()
		s.http.CloseClientConnections()
		s.http.Close()
		s.work.Wait()
	})
	return s
}

func (s *Server) touchedLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Feel sets the mode.
func (s *Server) Feel(m Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = m
}

// Hold blocks a method before it does anything, until the returned function is called.
func (s *Server) Hold(method string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.held[method] = gate
	return sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.held, method)
		s.mu.Unlock()
		close(gate)
	})
}

// Calls returns the number of calls of a method, successful or not.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Messages returns the messages of a channel, without threads.
func (s *Server) Messages(channel string) []Message { return s.where(channel, "") }

// Thread returns the replies to a message.
func (s *Server) Thread(m Message) []Message { return s.where(m.Channel, m.TS) }

func (s *Server) where(channel, thread string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Message
	for _, m := range s.messages {
		if m.Channel == channel && m.Thread == thread {
			all = append(all, *m)
		}
	}
	return all
}

// Ephemerals returns the ephemeral messages.
func (s *Server) Ephemerals() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.ephemerals...)
}

// Views returns the modals that were opened.
func (s *Server) Views() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.views...)
}

// Ack returns the acknowledgement of an envelope. It returns false if there is none yet.
func (s *Server) Ack(envelope string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.acks[envelope]
	return a, ok
}

// Until waits for a condition. The test fails if it does not become true.
func (s *Server) Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	late := time.NewTimer(60 * time.Second)
	defer late.Stop()
	again := time.NewTicker(20 * time.Millisecond) // the condition may depend on other servers
	defer again.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if is() {
			return
		}
		select {
		case <-changed:
		case <-again.C:
		case <-late.C:
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

// method serves one call of the Web API.
func (s *Server) method(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/api/")
	s.mu.Lock()
	s.calls[name]++
	mode, gate := s.mode, s.held[name]
	s.touchedLocked()
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		case <-s.done:
		}
	}
	switch mode {
	case Down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case Broken:
		panic(http.ErrAbortHandler)
	case Limited:
		w.Header().Set("Retry-After", strconv.Itoa(int(RetryAfter.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case Slow:
		select {
		case <-time.After(2 * time.Second):
		case <-s.done:
		}
	case Well:
	}
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
	}
	wrong := func(code string) { answer(map[string]any{"ok": false, "error": code}) }
	token, want := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), BotToken
	if token == "" {
		token = r.FormValue("token")
	}
	if name == "apps.connections.open" {
		want = AppToken
	}
	if token != want {
		wrong("invalid_auth")
		return
	}
	switch name {
	case "auth.test":
		answer(map[string]any{"ok": true, "url": "https://test.slack.com/", "team": "Test", "user": "callyard", "team_id": Team, "user_id": "U0000BOT", "bot_id": "B0000BOT", "is_enterprise_install": false})
	case "chat.postMessage", "chat.postEphemeral", "chat.update":
		s.chat(name, r, answer, wrong)
	case "views.open":
		var v struct {
			Trigger string          `json:"trigger_id"`
			View    json.RawMessage `json:"view"`
		}
		if json.NewDecoder(r.Body).Decode(&v) != nil || v.Trigger == "" {
			wrong("invalid_arguments")
			return
		}
		s.mu.Lock()
		s.views = append(s.views, string(v.View))
		s.touchedLocked()
		s.mu.Unlock()
		answer(map[string]any{"ok": true, "view": v.View})
	case "apps.connections.open":
		answer(map[string]any{"ok": true, "url": "ws" + strings.TrimPrefix(s.http.URL, "http") + "/link?ticket=1&app_id=" + App})
	default:
		wrong("unknown_method")
	}
}

func (s *Server) chat(name string, r *http.Request, answer func(any), wrong func(string)) {
	m := Message{Channel: r.FormValue("channel"), Thread: r.FormValue("thread_ts"), Text: r.FormValue("text"), Blocks: r.FormValue("blocks"), User: r.FormValue("user")}
	if m.Blocks != "" && !json.Valid([]byte(m.Blocks)) {
		wrong("invalid_blocks_format")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.touchedLocked()
	if s.noBlocks && m.Blocks != "" {
		wrong("invalid_blocks")
		return
	}
	switch name {
	case "chat.postMessage":
		s.next++
		m.TS = fmt.Sprintf("%d.%06d", time.Now().Unix(), s.next)
		s.messages = append(s.messages, &m)
		answer(map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS, "message": map[string]any{"type": "message", "subtype": "bot_message", "text": m.Text, "ts": m.TS, "bot_id": "B0000BOT"}})
	case "chat.postEphemeral":
		s.ephemerals = append(s.ephemerals, m)
		answer(map[string]any{"ok": true, "message_ts": strconv.FormatInt(time.Now().Unix(), 10) + ".000001"})
	default:
		for _, old := range s.messages {
			if old.Channel == m.Channel && old.TS == r.FormValue("ts") {
				old.Text, old.Blocks = m.Text, m.Blocks
				old.Edits++
				answer(map[string]any{"ok": true, "channel": old.Channel, "ts": old.TS, "text": old.Text, "message": map[string]any{"text": old.Text}})
				return
			}
		}
		wrong("message_not_found")
	}
}

// Copy posts the same message to the channel again, as after a post whose response was lost.
func (s *Server) Copy(m Message) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	m.TS = fmt.Sprintf("%d.%06d", time.Now().Unix(), s.next)
	kept := m
	s.messages = append(s.messages, &kept)
	s.touchedLocked()
	return m
}

// RefuseBlocks sets whether messages with blocks are refused.
func (s *Server) RefuseBlocks(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noBlocks = on
}
