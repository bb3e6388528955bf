package hostile

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// Request is a damaged request, encoded for the wire.
type Request struct {
	Operation string
	// Damage names the kind of damage.
	Damage string
	// Method is the method for which the response is parsed.
	Method string
	Wire   []byte
	// Framed reports that the request has a well-defined end, so that the connection can be
	// reused.
	Framed bool
}

// Damaged returns number n of the seed's requests for an operation. The same seed, golden, host
// and n give the same bytes.
func Damaged(seed uint64, g Golden, host string, n int) Request {
	h := fnv.New64a()
	_, _ = h.Write([]byte(g.Operation)) // it never fails
	r := rand.New(rand.NewPCG(seed^h.Sum64(), uint64(n)))
	m := &mutation{Rand: r, g: g, host: host}
	m.g.Header = append([]string(nil), g.Header...)
	kinds := whole
	if len(g.Body) == 0 {
		kinds = bodiless
	}
	k := kinds[r.IntN(len(kinds))]
	k.do(m)
	wire := m.wire
	if wire == nil {
		wire = m.g.bytes(m.host)
	}
	return Request{Operation: g.Operation, Damage: k.name, Method: m.g.Method, Wire: wire, Framed: m.wire == nil && !k.breaks}
}

// mutation is a request while it is damaged.
type mutation struct {
	*rand.Rand
	g    Golden
	host string
	wire []byte // the encoded request, if it can no longer be derived from g
}

// kind is one way to damage a request. breaks reports that the connection cannot be reused
// afterwards.
type kind struct {
	name   string
	do     func(*mutation)
	breaks bool
}

// bodiless are the kinds for requests without a body, and whole those for all others.
var (
	bodiless = []kind{
		{"path", (*mutation).damagePath, false}, {"query", (*mutation).damageQuery, false}, {"query", (*mutation).damageQuery, false}, {"method", (*mutation).damageMethod, true},
		{"request line", (*mutation).damageLine, true}, {"header", (*mutation).damageHeader, false}, {"header", (*mutation).damageHeader, false},
		{"header flood", (*mutation).floodHeaders, true}, {"header syntax", (*mutation).damageSyntax, true}, {"host", (*mutation).damageHost, true},
		{"unwanted body", (*mutation).addBody, true}, {"length", (*mutation).damageLength, true}, {"pipeline", (*mutation).pipeline, true}, {"bytes", (*mutation).flipWire, true},
	}
	ofBodies = []kind{
		{"truncated", (*mutation).truncate, false}, {"flipped", (*mutation).flip, false}, {"type", (*mutation).wrongType, false}, {"type", (*mutation).wrongType, false},
		{"type", (*mutation).wrongType, false}, {"deep", (*mutation).deep, false}, {"number", (*mutation).number, false}, {"text", (*mutation).text, false}, {"twice", (*mutation).twice, false},
		{"member", (*mutation).member, false}, {"many", (*mutation).many, false}, {"other body", (*mutation).otherBody, false}, {"media type", (*mutation).mediaType, false},
		{"compressed", (*mutation).compress, false}, {"chunks", (*mutation).chunks, true}, {"length", (*mutation).damageLength, true}, {"large", (*mutation).large, true},
	}
	whole = append(append([]kind(nil), bodiless...), append(append([]kind(nil), ofBodies...), ofBodies...)...)
)

// pick returns one of the choices.
func (m *mutation) pick(choices ...string) string { return choices[m.IntN(len(choices))] }

// set replaces a header, or adds it.
func (m *mutation) set(name, value string) {
	for i, line := range m.g.Header {
		if have, _, _ := strings.Cut(line, ":"); strings.EqualFold(have, name) {
			m.g.Header[i] = name + ": " + value
			return
		}
	}
	m.g.Header = append(m.g.Header, name+": "+value)
}

// junk returns n random bytes.
func (m *mutation) junk(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.Uint32())
	}
	return b
}

// visible returns n random bytes that are valid in a header.
func (m *mutation) visible(n int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/ \"%<>[]{}|^`"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[m.IntN(len(alphabet))]
	}
	return string(b)
}

func (m *mutation) damagePath() {
	path, query, _ := strings.Cut(m.g.Path, "?")
	at := m.IntN(len(path) + 1)
	insert := m.pick("/", "//", "/./", "/../", "%2e%2e/", "..%2f", "%00", "%", "%zz", "%c0%af", "%ff", "\\", ";x=1", "%20", "%0d%0aX: y", "é", "%F0%9F%98%80", "*", "{id}", "%25%32%65", "~", "..;/")
	switch m.IntN(6) {
	case 0:
		insert = strings.Repeat(insert, 1+m.IntN(300))
	case 1:
		insert = strings.Repeat("a", 1<<m.IntN(15))
	}
	m.g.Path = path[:at] + insert + path[at:]
	if query != "" {
		m.g.Path += "?" + query
	}
}

func (m *mutation) damageQuery() {
	name := m.pick("limit", "cursor", "timeout_ms", "state", "format", "wait", "from", "since", "until", "uri", "server", "tool", "open", "stream", "follow", "priority", "expires_in",
		"callback_url", "query", "max_tools", "budget_tokens", "strict", "requester", "", "%00", "x")
	value := m.pick("", "-1", "0", "1", "9223372036854775808", "1e9", "NaN", "true", "TRUE", "null", "%00", "%ff", "%zz", "%", "a%26b", "../x", "1;2", "[]", "9999-99-99T99:99:99Z",
		"0001-01-01T00:00:00Z", "batch_00000000000000000000000000", "AAAAAAAAAAAA", "http%3A%2F%2F127.0.0.1", "held,queued", "%C2%A0", "openai", "mcp", "18446744073709551616")
	if m.IntN(8) == 0 {
		value = strings.Repeat(value+"A", 1<<m.IntN(12))
	}
	sep := "?"
	if strings.Contains(m.g.Path, "?") {
		sep = m.pick("&", "&", ";", "?")
	}
	for range 1 + m.IntN(3) {
		m.g.Path += sep + name + m.pick("=", "=", "=", "", "==") + value
		sep = "&"
	}
}

func (m *mutation) damageMethod() {
	m.g.Method = m.pick("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "BREW", "G\x00T", "", "POST\t", strings.Repeat("M", 5000), "PRI", "M-SEARCH")
}

func (m *mutation) damageLine() {
	g := m.g
	target := m.pick("http://"+m.host+g.Path, "http://evil.example"+g.Path, "*", "", g.Path+"#x", "//"+m.host+g.Path, "/\r"+g.Path, g.Path+" x", "127.0.0.1:1", "file:///etc/passwd")
	version := m.pick("HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/3", "HTTP/9.9", "HTTP/1.1x", "http/1.1", "", "HTTP/1.10", "HTTP/-1.1")
	head, _, _ := bytes.Cut(g.bytes(m.host), []byte("\r\n"))
	m.wire = append(fmt.Appendf(nil, "%s %s %s", g.Method, target, version), g.bytes(m.host)[len(head):]...)
	switch m.IntN(8) {
	case 0:
		m.wire = append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), m.junk(64)...)
	case 1: // a TLS ClientHello
		m.wire = append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, m.junk(200)...)
	case 2:
		m.wire = append([]byte("\r\n\r\n\r\n"), m.wire...)
	}
}

func (m *mutation) damageHeader() {
	name := m.pick("Prefer", "Idempotency-Key", "Callyard-Timeout-Ms", "Callyard-Callback-Url", "Traceparent", "Tracestate", "Authorization", "X-Api-Key", "Cookie", "Last-Event-Id",
		"Accept", "Accept-Encoding", "Range", "If-None-Match", "If-Modified-Since", "Cache-Control", "X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id", "X-Http-Method-Override",
		"Origin", "Sec-Fetch-Site", "Referer", "Upgrade", "Connection", "Te", "Trailer", "Expect", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-X",
		"Content-Type", "Content-Encoding", "User-Agent", "Forwarded", "Proxy", "Max-Forwards", "X-Slack-Signature", "Webhook-Signature")
	value := m.pick("", "x", "0", "-1", "99999999999999999999", "respond-async", "wait=1", "wait=99999999999999999999", "wait=-1, respond-async", "\"unclosed", "a,b,,c;;=", "00-00-00-00",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Bearer", "Bearer x", "Basic !!!", "bytes=0-,1-2,-5", "*/*;q=9", "text/event-stream", "gzip;q=0", "h2c", "websocket",
		"keep-alive, close, Host", "100-continue", "trailers, deflate", "=?base64?!!!?=", "=?base64?AAAA?=", "http://evil.example", "null", "cross-site", "\xff\xfe", "é", "application/json",
		"\x7f", "2026-07-28", "1999-01-01")
	if m.IntN(6) == 0 {
		value = m.visible(1 << m.IntN(14))
	}
	if m.IntN(4) == 0 { // twice
		m.g.Header = append(m.g.Header, name+": "+m.pick(value, "x"))
	}
	m.set(name, value)
	if strings.EqualFold(name, "Expect") || strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Upgrade") {
		m.wire = m.g.bytes(m.host)
	}
}

func (m *mutation) floodHeaders() {
	switch m.IntN(4) {
	case 0: // many
		for i := range 1 << (4 + m.IntN(9)) {
			m.g.Header = append(m.g.Header, fmt.Sprintf("X-%d: %d", i, i))
		}
	case 1: // a huge one
		m.g.Header = append(m.g.Header, "X-Giant: "+strings.Repeat("g", 1<<(10+m.IntN(11))))
	case 2: // the same one
		m.g.Header = append(m.g.Header, strings.Repeat("Accept: */*\r\n", 1+m.IntN(1500))+"X: y")
	case 3: // a huge name
		m.g.Header = append(m.g.Header, strings.Repeat("N", 1<<(6+m.IntN(11)))+": v")
	}
}

func (m *mutation) damageSyntax() {
	line := m.pick("NoColon", ": no name", "Sp ace: x", "Fold: a\r\n b", "Nul: a\x00b", "Cr: a\rb", "Tab\t: x", "Ü: x", "X : y", "Content-Length : 5", "\r\nX: y", " X: y", "Transfer-Encoding\x0b: chunked", "X: \x01\x02")
	m.g.Header = append(m.g.Header, line)
	wire := m.g.bytes(m.host)
	if m.IntN(4) == 0 {
		wire = bytes.ReplaceAll(wire, []byte("\r\n"), []byte("\n"))
	}
	m.wire = wire
}

func (m *mutation) damageHost() {
	host := m.pick("", "evil.example", "localhost", "127.0.0.1:99999", "[::1", "[::1]:80", "a b", "127.0.0.1, evil.example", "@127.0.0.1", "127.0.0.1%00", strings.Repeat("h", 4000), "127.1", "xn--", "LOCALHOST.", "..")
	m.wire = m.g.bytes(host)
	switch m.IntN(4) {
	case 0:
		m.wire = bytes.Replace(m.wire, []byte("Host: "+host+"\r\n"), nil, 1)
	case 1:
		m.wire = bytes.Replace(m.wire, []byte("\r\n"), []byte("\r\nHost: "+m.host+"\r\n"), 1)
	}
}

func (m *mutation) addBody() {
	m.g.Body = []byte(m.pick("{}", "null", "x", strings.Repeat("{", 1000), `{"_method":"DELETE"}`, strings.Repeat("b", 100_000)))
}

func (m *mutation) pipeline() {
	one := m.g.bytes(m.host)
	for range 1 + m.IntN(20) {
		m.wire = append(m.wire, one...)
	}
	if m.IntN(2) == 0 {
		m.wire = append(m.wire, one[:m.IntN(len(one))]...)
	}
}

func (m *mutation) flipWire() {
	m.wire = m.g.bytes(m.host)
	for range 1 + m.IntN(8) {
		m.wire[m.IntN(len(m.wire))] = byte(m.Uint32())
	}
}
