package webhook

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// BatchEnded is the type of the event of a batch's end. That of a call's end is "call."
// and its last state.
const BatchEnded = "batch.ended"

const (
	// maxResult is the largest result that travels in an event, in bytes; a larger
	// one is linked to.
	maxResult = 256 << 10
	// maxEvent is the largest event as it is sent, in bytes.
	maxEvent = 512 << 10
)

// Event is what a receiver is told.
type Event struct {
	// Type is words in lower case with dots between: see [BatchEnded].
	Type string
	// Time is when it happened.
	Time time.Time
	// Data is a JSON object, sent as these bytes.
	Data json.RawMessage
}

// CallEnd is a call that reached its last state.
type CallEnd struct {
	// State is the state's name: succeeded, failed, denied, expired, canceled or unknown.
	State string
	Time  time.Time
	// View is what GET /calls/{id} shows of the call, without the result.
	View json.RawMessage
	// Result is the result's bytes as the tool sent them; nil where there is none.
	Result []byte
	// ResultURL is where the result can be read while it is kept. It stands in for
	// a result over [maxResult].
	ResultURL string
}

// CallEvent returns the event of a call's end: its data is the view with the
// member result, or with result_url and result_bytes when that is too large.
func CallEvent(c CallEnd) Event {
	e := Event{Type: "call." + c.State, Time: c.Time, Data: c.View}
	if c.Result == nil {
		return e
	}
	open, ok := bytes.CutSuffix(bytes.TrimSpace(c.View), []byte("}"))
	if !ok {
		return e // no object; encode says so
	}
	data := make([]byte, 0, len(c.View)+min(len(c.Result), maxResult)+128)
	data = append(data, bytes.TrimSpace(open)...)
	if !bytes.HasSuffix(data, []byte("{")) {
		data = append(data, ',')
	}
	if len(c.Result) <= maxResult && json.Valid(c.Result) {
		data = append(append(data, `"result":`...), c.Result...)
	} else {
		link, err := json.Marshal(c.ResultURL)
		if err != nil {
			link = []byte(`""`)
		}
		data = append(append(data, `"result_url":`...), link...)
		data = strconv.AppendInt(append(data, `,"result_bytes":`...), int64(len(c.Result)), 10)
	}
	e.Data = append(data, '}')
	return e
}

// encode returns the body of the request. It checks what would break a receiver.
func (e Event) encode() ([]byte, *schema.Error) {
	if !eventType(e.Type) {
		return nil, schema.Errorf(schema.KindInternal, "The event type %q is invalid: write lower-case words separated by dots.", e.Type)
	}
	data := bytes.TrimSpace(e.Data)
	if !bytes.HasPrefix(data, []byte("{")) || !json.Valid(data) {
		return nil, schema.Errorf(schema.KindInternal, "The data of the event %s is not a JSON object.", e.Type)
	}
	body := make([]byte, 0, len(data)+96)
	body = append(append(body, `{"type":"`...), e.Type...)
	body = append(body, `","timestamp":"`...)
	body = e.Time.UTC().AppendFormat(body, "2006-01-02T15:04:05.999Z07:00")
	body = append(append(append(body, `","data":`...), data...), '}')
	if len(body) > maxEvent {
		return nil, schema.Errorf(schema.KindTooLarge, "The event %s has %d bytes and exceeds the limit of %d bytes: send a link to large data.", e.Type, len(body), maxEvent)
	}
	return body, nil
}

func eventType(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '.' || s[len(s)-1] == '.' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c == '_', c == '.' && s[i-1] != '.':
		default:
			return false
		}
	}
	return true
}
