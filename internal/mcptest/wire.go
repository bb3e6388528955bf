package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// message is a JSON-RPC request or notification as it came. ID is nil for a
// notification.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`

	modern bool // the sender speaks 2026-07-28, by the _meta of the params
}

type requestMeta struct {
	ProtocolVersion string          `json:"io.modelcontextprotocol/protocolVersion"`
	ProgressToken   json.RawMessage `json:"progressToken"`
}

// parseMessage reads one line. It reports false for what is not a JSON object
// with a method: an answer to a request we never send, or noise.
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
	_ = json.Unmarshal(params, &p) // what cannot be read has no meta
	return p.Meta
}

// output writes whole lines, one at a time.
type output struct {
	mu      sync.Mutex
	w       io.Writer
	noise   func(io.Writer) // written around each line when set
	stalled bool            // nothing is written any more
}

// write gives play the stream for as long as it writes one message. Errors are
// left alone: when the reader is gone there is nobody to tell.
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

// half writes the first half of a good answer and stalls the stream for good.
func (o *output) half(id json.RawMessage, body string) {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, body)
	o.write(func(w io.Writer) {
		_, _ = io.WriteString(w, text[:len(text)/2])
		o.stalled = true
	})
}

// huge answers with size bytes of text, without holding them.
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

// stamp marks a result object as a modern server must.
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
