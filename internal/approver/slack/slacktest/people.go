package slacktest

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Payload is the payload that Slack sends for a click. Tests modify it to forge requests.
type Payload = map[string]any

// Click returns the payload of a person who uses a button, or the menu of a card.
func Click(user string, m Message, action, value, text string) Payload {
	act := Payload{"action_id": action, "block_id": "answer", "type": "button", "value": value, "action_ts": stamp(), "text": Payload{"type": "plain_text", "text": "Approve", "emoji": false}}
	if action == "deny" {
		delete(act, "value")
		act["type"] = "static_select"
		act["selected_option"] = Payload{"value": value, "text": Payload{"type": "plain_text", "text": text, "emoji": false}}
	}
	return Payload{
		"type": "block_actions", "user": Payload{"id": user, "username": user, "name": user, "team_id": Team}, "api_app_id": App, "token": "deprecated",
		"container":  Payload{"type": "message", "message_ts": m.TS, "channel_id": m.Channel, "is_ephemeral": false},
		"trigger_id": "12466734323.1395872398." + rand.Text(), "team": Payload{"id": Team, "domain": "test"}, "enterprise": nil, "is_enterprise_install": false,
		"channel": Payload{"id": m.Channel, "name": "approvals"}, "message": Payload{"type": "message", "ts": m.TS, "text": m.Text, "bot_id": "B0000BOT"},
		"state": Payload{"values": Payload{}}, "response_url": "https://hooks.slack.com/actions/" + Team + "/1/x", "actions": []Payload{act},
	}
}

// Submission returns the payload of a person who submits a modal with a reason.
func Submission(user, view, reason string) Payload {
	var v Payload
	_ = json.Unmarshal([]byte(view), &v) // a value that is not a view is refused later
	if v == nil {
		v = Payload{}
	}
	v["id"], v["team_id"], v["app_id"] = "V0000TEST", Team, App
	v["state"] = Payload{"values": Payload{"reason": Payload{"reason": Payload{"type": "plain_text_input", "value": reason}}}}
	return Payload{
		"type": "view_submission", "team": Payload{"id": Team, "domain": "test"}, "user": Payload{"id": user, "username": user, "name": user, "team_id": Team},
		"api_app_id": App, "token": "deprecated", "trigger_id": "12466734323.1395872398." + rand.Text(), "view": v, "response_urls": []Payload{},
	}
}

func stamp() string { return strconv.FormatInt(time.Now().UnixNano(), 10) }

// Form returns the HTTP body of a payload.
func Form(p Payload) []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return []byte(url.Values{"payload": {string(body)}}.Encode())
}

// Command returns the HTTP body of a slash command.
func Command(user, text string) []byte {
	return []byte(url.Values{
		"token": {"deprecated"}, "team_id": {Team}, "team_domain": {"test"}, "channel_id": {"C0GENERAL"}, "channel_name": {"general"}, "user_id": {user}, "user_name": {user},
		"command": {"/callyard"}, "text": {text}, "api_app_id": {App}, "is_enterprise_install": {"false"}, "response_url": {"https://hooks.slack.com/commands/1"}, "trigger_id": {rand.Text()},
	}.Encode())
}

// Sign returns the headers of a request that Slack sends at the given time.
func Sign(secret string, at time.Time, body []byte) http.Header {
	ts := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + ts + ":"))
	mac.Write(body)
	return http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "User-Agent": {"Slackbot 1.0 (+https://api.slack.com/robots)"},
		"X-Slack-Request-Timestamp": {ts}, "X-Slack-Signature": {"v0=" + hex.EncodeToString(mac.Sum(nil))},
	}
}

// Request returns a signed request with the current time.
func Request(t testing.TB, to string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = Sign(SigningSecret, time.Now(), body)
	return r
}

// socket serves one Socket Mode connection.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	well := s.mode == Well || s.mode == Slow
	s.mu.Unlock()
	if !well {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	lock := new(sync.Mutex)
	_ = write(c, lock, Payload{
		"type": "hello", "num_connections": 1, "connection_info": Payload{"app_id": App},
		"debug_info": Payload{"host": "applink-test", "build_number": 10, "approximate_connection_time": 18060},
	})
	s.mu.Lock()
	s.sockets[c] = lock
	s.touchedLocked()
	s.mu.Unlock()
	gone := make(chan struct{})
	s.work.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-gone:
				return
			case <-tick.C:
				_ = c.WriteControl(websocket.PingMessage, []byte("Ping from applink-test"), time.Now().Add(time.Second))
			}
		}
	})
	for {
		var ack struct {
			Envelope string          `json:"envelope_id"`
			Payload  json.RawMessage `json:"payload"`
		}
		if err := c.ReadJSON(&ack); err != nil {
			break
		}
		s.mu.Lock()
		s.acks[ack.Envelope] = string(ack.Payload)
		s.touchedLocked()
		s.mu.Unlock()
	}
	close(gone)
	s.mu.Lock()
	delete(s.sockets, c)
	s.touchedLocked()
	s.mu.Unlock()
	_ = c.Close()
}

func write(c *websocket.Conn, lock *sync.Mutex, v any) error {
	lock.Lock()
	defer lock.Unlock()
	return c.WriteJSON(v)
}

// Sockets returns the number of open sockets.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets)
}

// Drop closes every socket.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		delete(s.sockets, c) // no more envelopes are sent to it
		_ = c.NetConn().Close()
	}
}

// Send sends an envelope to the sockets. kind is "interactive" or "slash_commands". If there are
// several sockets, each gets a copy, like a redelivery by Slack.
func (s *Server) Send(t testing.TB, envelope, kind string, payload any) {
	t.Helper()
	s.mu.Lock()
	all := maps.Clone(s.sockets)
	s.mu.Unlock()
	if len(all) == 0 {
		t.Fatal("nobody listens on a socket")
	}
	for c, lock := range all {
		if err := write(c, lock, Payload{"type": kind, "envelope_id": envelope, "payload": payload, "accepts_response_payload": kind == "slash_commands", "retry_attempt": 0, "retry_reason": ""}); err != nil {
			t.Error(err)
		}
	}
}
