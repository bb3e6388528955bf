package hostile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// byteRange is the range of a JSON value, or of a member with its name, in a body.
type byteRange struct{ from, to int }

// spots returns the values of the body, and the members of its objects.
func (m *mutation) spots() (values, members []byteRange) {
	d := json.NewDecoder(bytes.NewReader(m.g.Body))
	var open []byte // expected token of each container: '{' a name, ':' a value, '[' a value
	var starts, names []int
	place := func() int { // returns the start of the next token
		i := int(d.InputOffset())
		for i < len(m.g.Body) && strings.IndexByte(" \t\r\n,:", m.g.Body[i]) >= 0 {
			i++
		}
		return i
	}
	over := func(from int) { // a value ended
		to := int(d.InputOffset())
		values = append(values, byteRange{from, to})
		if n := len(open); n > 0 && open[n-1] == ':' {
			members = append(members, byteRange{names[len(names)-1], to})
			names = names[:len(names)-1]
			open[n-1] = '{'
		}
	}
	for {
		from := place()
		token, err := d.Token()
		if err != nil {
			return values, members // not JSON: the values found so far
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open, starts = append(open, m.g.Body[from]), append(starts, from)
		case json.Delim('}'), json.Delim(']'):
			from = starts[len(starts)-1]
			open, starts = open[:len(open)-1], starts[:len(starts)-1]
			over(from)
		default:
			if n := len(open); n > 0 && open[n-1] == '{' {
				open[n-1] = ':'
				names = append(names, from)
				continue
			}
			over(from)
		}
	}
}

// replace replaces a value.
func (m *mutation) replace(with string) {
	values, _ := m.spots()
	if len(values) == 0 {
		m.g.Body = []byte(with)
		return
	}
	s := values[m.IntN(len(values))]
	m.splice(s.from, s.to, with)
}

func (m *mutation) splice(from, to int, with string) {
	m.g.Body = append(append(append([]byte(nil), m.g.Body[:from]...), with...), m.g.Body[to:]...)
}

func (m *mutation) truncate() { m.g.Body = m.g.Body[:m.IntN(len(m.g.Body))] }

func (m *mutation) flip() {
	m.g.Body = bytes.Clone(m.g.Body)
	for range 1 + m.IntN(8) {
		m.g.Body[m.IntN(len(m.g.Body))] = byte(m.Uint32())
	}
}

func (m *mutation) wrongType() {
	m.replace(m.pick("null", "true", "false", "0", "-1", "1.5", `""`, `"x"`, "[]", "{}", "[null]", `{"":{}}`, `[{}]`, "1e400", "undefined", "NaN", "'x'", "", `"2026-07-28"`, `{"$ref":"#"}`, `"\u0000"`))
}

func (m *mutation) deep() {
	n := 1 << m.IntN(17)
	open, shut := "[", "]"
	if m.IntN(2) == 0 {
		open, shut = `{"a":`, "}"
	}
	end := strings.Repeat(shut, n)
	if m.IntN(4) == 0 {
		end = ""
	}
	m.replace(strings.Repeat(open, n) + "1" + end)
}

func (m *mutation) number() {
	m.replace(m.pick("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e308", "1e309", "1e-400", "-0", "-0.0", "0.1e1", "1E+2", "1e999999999", "1e-999999999",
		"00", "+1", ".5", "1.", "0x10", "1_000", "Infinity", "1"+strings.Repeat("0", 1<<m.IntN(16)), "0."+strings.Repeat("3", 1<<m.IntN(16)), "4294967296", "2147483648", "1e18", "5e-324"))
}

func (m *mutation) text() {
	odd := m.pick(`\u0000`, `\ud800`, `\udc00\ud800`, `\u202e`, "\u202e", "\u0000", "\xff\xfe", "\xc0\x80", "\xed\xa0\x80", `\x41`, `\`, "\n", "\u2028", `"; DROP TABLE calls;--`, "../../../etc/passwd", "${jndi:x}",
		"{{7*7}}", "<script>", "%s%n%x", "batch_00000000000000000000000000", "\U0001f600", "\ufeff", ">", "*", "mcp.v1.>", "$SYS.>")
	if m.IntN(4) == 0 {
		odd = strings.Repeat(odd, 1<<m.IntN(13))
	}
	m.replace(`"` + odd + `"`)
}

func (m *mutation) twice() {
	_, members := m.spots()
	if len(members) == 0 {
		m.g.Body = append(bytes.Clone(m.g.Body), m.g.Body...)
		return
	}
	s := members[m.IntN(len(members))]
	again := string(m.g.Body[s.from:s.to])
	if m.IntN(3) == 0 && len(again) > 2 { // the same name, with an escape
		again = fmt.Sprintf(`"\u%04x`, again[1]) + again[2:]
	}
	m.splice(s.to, s.to, ","+again)
}

func (m *mutation) member() {
	_, members := m.spots()
	if len(members) == 0 {
		m.g.Body = []byte(`{"x":1}`)
		return
	}
	s := members[m.IntN(len(members))]
	is := string(m.g.Body[s.from:s.to])
	name, value, _ := strings.Cut(is, ":")
	switch m.IntN(5) {
	case 0: // removes it
		m.splice(s.from, s.to, `"x":1`)
	case 1:
		m.splice(s.from, s.to, strings.ToUpper(name)+":"+value)
	case 2:
		m.splice(s.to, s.to, `,"`+m.pick("__proto__", "constructor", "$schema", "", "\\u0000", "_meta", "principal", "risk_level", "confirm", "approved", "id")+`":`+value)
	case 3:
		m.splice(s.from, s.to, m.pick("", ",", name, value, "{}", is+is, is+",", "//c\n"+is))
	case 4:
		m.splice(s.from, s.to, name+":"+name)
	}
}

// many inserts very many members or items.
func (m *mutation) many() {
	n := 1 << m.IntN(15)
	var b strings.Builder
	switch m.IntN(3) {
	case 0:
		b.WriteByte('{')
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		b.WriteString(`"e":0}`)
	case 1:
		b.WriteString("[" + strings.Repeat("0,", n) + "0]")
	case 2:
		b.WriteString("[" + strings.Repeat("{},", n) + "{}]")
	}
	m.replace(b.String())
}

func (m *mutation) otherBody() {
	body := m.pick("", " ", "null", "[]", "{}", `""`, "0", "\xef\xbb\xbf{}", "{}{}", "a=1&b=2", "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'a'>]><x>&a;</x>", "--- !!python/object:os.system", "\x00", "{\"a\":1}\n{\"a\":2}\n", "\n\n\n",
		"data: x\n\n", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)
	if m.IntN(4) == 0 {
		body = string(m.junk(1 << m.IntN(14)))
	}
	m.g.Body = []byte(body)
}

func (m *mutation) mediaType() {
	m.set("Content-Type", m.pick("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-16", "application/json; charset=\"", "application/JSON", "json", "*/*",
		"application/xml", "application/x-ndjson", "application/vnd.x+json", ";;", "application/json, text/plain", "a/"+strings.Repeat("b", 4000), "application/json; "+strings.Repeat("a=b;", 500)))
	if m.IntN(4) == 0 {
		m.g.Header = append(m.g.Header, "Content-Type: text/html")
	}
}

// compress sends a compressed body that is much larger when unpacked, or only claims to be
// compressed.
func (m *mutation) compress() {
	encoding := m.pick("gzip", "deflate", "br", "zstd", "identity", "gzip, gzip", "x-gzip", "chunked", "compress")
	var packed bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&packed)
	if encoding == "deflate" {
		if m.IntN(2) == 0 {
			w = zlib.NewWriter(&packed)
		} else {
			w, _ = flate.NewWriter(&packed, flate.BestSpeed) // a valid level
		}
	}
	unpacked := m.g.Body
	if m.IntN(4) == 0 {
		unpacked = append([]byte(`{"bomb":"`), make([]byte, 1<<(12+m.IntN(11)))...)
	}
	_, _ = w.Write(unpacked) // writing to a buffer cannot fail
	_ = w.Close()
	m.g.Body = packed.Bytes()
	m.set("Content-Encoding", encoding)
}

// chunks sends the body in chunks, most of them invalid.
func (m *mutation) chunks() {
	g := m.g
	g.Body = nil
	head := bytes.TrimSuffix(g.bytes(m.host), []byte("\r\n"))
	b := append(head, "Transfer-Encoding: "+m.pick("chunked", "chunked", "chunked", "Chunked", "gzip, chunked", "chunked, chunked", "identity", "xchunked", "chunked\r\nContent-Length: 3", "chunked\r\nTransfer-Encoding: identity")+"\r\n\r\n"...)
	body := m.g.Body
	for len(body) > 0 {
		n := 1 + m.IntN(len(body))
		size := strconv.FormatInt(int64(n), 16)
		switch m.IntN(10) {
		case 0:
			size = m.pick("-1", "0x5", "ffffffffffffffff", "fffffffffffffffff", "", "g", "00000000000000000000005", size+" ", "5;"+strings.Repeat("ext=1;", 1000), "7fffffffffffffff")
		case 1:
			size += ";" + m.visible(100)
		}
		b = append(b, size+"\r\n"...)
		b = append(b, body[:n]...)
		b = append(b, m.pick("\r\n", "\r\n", "\r\n", "\n", "")...)
		body = body[n:]
	}
	m.wire = append(b, m.pick("0\r\n\r\n", "0\r\n\r\n", "0\r\nX-Trailer: y\r\n\r\n", "0\r\nHost: evil\r\nContent-Length: 9\r\n\r\n", "", "0\r\n", "00\r\n\r\nGET / HTTP/1.1\r\n\r\n")...)
}

// damageLength sends a wrong Content-Length.
func (m *mutation) damageLength() {
	n := len(m.g.Body)
	head := m.g
	head.Body = nil
	b := bytes.TrimSuffix(head.bytes(m.host), []byte("\r\n"))
	length := m.pick(strconv.Itoa(n+1+m.IntN(100)), strconv.Itoa(n/2), "-1", "abc", "", "+"+strconv.Itoa(n), "0x10", "9223372036854775807", "99999999999999999999", strconv.Itoa(n)+", "+strconv.Itoa(n), "1 1",
		strconv.Itoa(n)+"\r\nContent-Length: "+strconv.Itoa(n+1), "33554432", "1048576", "0", " "+strconv.Itoa(n)+" ", "0"+strconv.Itoa(n))
	m.wire = append(fmt.Appendf(b, "Content-Length: %s\r\n\r\n", length), m.g.Body...)
}

// large occasionally sends a body whose size is close to the limit of bodies.
func (m *mutation) large() {
	if m.IntN(25) != 0 {
		m.wrongType()
		return
	}
	m.replace(`"` + strings.Repeat("L", 1<<20+m.IntN(1<<20)-1<<19) + `"`)
}
