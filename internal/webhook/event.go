package webhook

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// BatchEnded is the type of the event for the end of a batch. The type for the end of a call is
// "call." and its last state.
const BatchEnded = "batch.ended"

const (
	// maxResult is the largest result that an event includes, in bytes. For a larger one, the event
	// has a link.
	maxResult = 256 << 10
	// maxEvent is the largest encoded event, in bytes.
	maxEvent = 512 << 10
)

// Event is one notification.
type Event struct {
	// Type is lower-case words separated by dots; see [BatchEnded].
	Type string
	// Time is the time of the event.
	Time time.Time
	// Data is a JSON object. It is sent verbatim.
	Data json.RawMessage
}

// CallEnd is a call in its last state.
type CallEnd struct {
	// State is succeeded, failed, denied, expired, canceled or unknown.
	State string
	Time  time.Time
	// View is the body of GET /calls/{id}, without the result.
	View json.RawMessage
	// Result is the result as the tool sent it, or nil if there is none.
	Result []byte
	// ResultURL is the address of the result while it is kept. It replaces a result over
	// [maxResult].
	ResultURL string
}

// CallEvent returns the event of the end of a call. Its data is the view with the member result, or
// with result_url and result_bytes if the result is too large.
func CallEvent(c CallEnd) Event {
	e := Event{Type: "call." + c.State, Time: c.Time, Data: c.View}
	if c.Result == nil {
		return e
	}
	open, ok := bytes.CutSuffix(bytes.TrimSpace(c.View), []byte("}"))
	if !ok {
		return e // not an object; encode returns the error
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

// encode returns the body of the request. It rejects an event that receivers could not parse.
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
