package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// message is a received JSON-RPC request or notification. ID is nil for a notification.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`

	modern bool // the sender uses 2026-07-28, according to _meta in the params
}

type requestMeta struct {
	ProtocolVersion string          `json:"io.modelcontextprotocol/protocolVersion"`
	ProgressToken   json.RawMessage `json:"progressToken"`
}

// parseMessage parses one line. It returns false unless the line is a JSON object with a method. Any
// other line is noise, because the server sends no requests that could be answered.
func parseMessage(line []byte) (message, bool) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.Method == "" {
		return message{}, false
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	m.modern = metaOf(m.Params).ProtocolVersion == mcpwire.Modern
	return m, true
}

func metaOf(params json.RawMessage) requestMeta {
	var p struct {
		Meta requestMeta `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // unreadable params have no _meta
	return p.Meta
}

// output writes complete lines, one at a time.
type output struct {
	mu      sync.Mutex
	w       io.Writer
	noise   func(io.Writer) // if set, written around each line
	stalled bool            // nothing is written any longer
}

// write calls play with exclusive access to the stream, to write one message. Errors are ignored:
// if the reader has gone, there is no one to report to.
func (o *output) write(play func(io.Writer)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stalled {
		return
	}
	if o.noise != nil {
		o.noise(o.w)
		defer o.noise(o.w)
	}
	play(o.w)
}

func (o *output) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	o.write(func(w io.Writer) { _, _ = io.WriteString(w, text) })
}

// result answers the request with the result object.
func (o *output) result(id json.RawMessage, body string) {
	o.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, body)
}

// fault answers the request with a JSON-RPC error.
func (o *output) fault(id json.RawMessage, f rpcFault) {
	data := ""
	if f.data != "" {
		data = `,"data":` + f.data
	}
	o.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`, id, f.code, quote(f.message), data)
}

// half writes the first half of a good answer and stalls the stream permanently.
func (o *output) half(id json.RawMessage, body string) {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, body)
	o.write(func(w io.Writer) {
		_, _ = io.WriteString(w, text[:len(text)/2])
		o.stalled = true
	})
}

// huge answers with size bytes of text without holding them in memory.
func (o *output) huge(id json.RawMessage, size int, modern bool) {
	head, tail, _ := strings.Cut(stamp(textResult("\x00"), modern), `\u0000`)
	chunk := strings.Repeat("x", 64<<10)
	o.write(func(w io.Writer) {
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s`, id, head)
		for left := size; left > 0; left -= len(chunk) {
			if _, err := io.WriteString(w, chunk[:min(left, len(chunk))]); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, tail+"}\n")
	})
}

type rpcFault struct {
	code    int
	message string
	data    string // JSON, or empty
}

// stamp adds the members that a modern server must send to a result object.
func stamp(body string, modern bool) string {
	if !modern {
		return body
	}
	mark := `{"resultType":"complete",`
	if body == "{}" {
		mark = strings.TrimSuffix(mark, ",")
	}
	return mark + body[1:]
}

// quote returns s as a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("mcptest: encoding a string: " + err.Error()) // strings always encode
	}
	return string(b)
}
