package attach

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Subprotocol is the value that a program offers in Sec-WebSocket-Protocol.
const Subprotocol = "mcp"

// Headers with which a program describes itself. All are optional.
const (
	HeaderInstance = "Callyard-Instance"
	HeaderInFlight = "Callyard-In-Flight"
	HeaderVersion  = "Callyard-Version"
	HeaderLanguage = "Callyard-Language"
)

const (
	longestHeader = 64
	mostInFlight  = 100_000
)

// Program is a program's description of itself when it attaches.
type Program struct {
	Instance string // identifies the process across reconnections
	InFlight int    // maximum concurrent calls; 0 means unspecified
	Version  string // of its adapter or itself, for the log
	Language string // for the log
	Key      string // name of the key that it used; set by the caller of [ReadProgram]
}

// ReadProgram reads the request of a program before the upgrade. A program without an instance gets
// a generated one for this connection. The error is a *schema.Error of KindInvalidRequest that
// names the header.
func ReadProgram(h http.Header) (Program, error) {
	p := Program{Instance: h.Get(HeaderInstance), Version: h.Get(HeaderVersion), Language: h.Get(HeaderLanguage)}
	if !offers(h, Subprotocol) {
		return Program{}, schema.Errorf(schema.KindInvalidRequest, "A program attaches by WebSocket with the subprotocol %q; offer it in Sec-WebSocket-Protocol.", Subprotocol)
	}
	for name, value := range map[string]string{HeaderInstance: p.Instance, HeaderVersion: p.Version, HeaderLanguage: p.Language} {
		if len(value) > longestHeader || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
			return Program{}, schema.Errorf(schema.KindInvalidRequest, "The header %s must have at most %d printable ASCII characters.", name, longestHeader)
		}
	}
	if text := h.Get(HeaderInFlight); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostInFlight {
			return Program{}, schema.Errorf(schema.KindInvalidRequest, "The header %s must be a number from 1 to %d: the maximum number of concurrent calls of the program.", HeaderInFlight, mostInFlight)
		}
		p.InFlight = n
	}
	if p.Instance == "" {
		p.Instance = schema.NewID("program")
	}
	return p, nil
}

// offers reports whether a client offers the subprotocol.
func offers(h http.Header, subprotocol string) bool {
	for _, line := range h.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(name), subprotocol) {
				return true
			}
		}
	}
	return false
}
