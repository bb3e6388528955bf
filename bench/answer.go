package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	maxHead = 64 << 10
	maxBody = 128 << 20
)

var errHTTP = errors.New("the endpoint does not speak HTTP/1.1 as it should")

// answer is the part of an HTTP response that a load generator needs. The body is
// valid until the next read.
type answer struct {
	status int
	body   []byte
	// keep reports that the connection can be reused.
	keep bool
}

// answerReader reads HTTP/1.1 responses to POST requests from one connection. It supports
// only the three ways in which a body can end, which makes it several times cheaper
// than net/http.
type answerReader struct {
	source   io.Reader
	buf      []byte
	from, to int    // the range of buf that is read but not consumed
	joined   []byte // body of the last chunked answer
}

func newAnswerReader(source io.Reader) *answerReader {
	return &answerReader{source: source, buf: make([]byte, 8<<10)}
}

// next reads one response. After an error the connection cannot be used any more.
func (r *answerReader) next() (answer, error) {
	for {
		head, err := r.head()
		if err != nil {
			return answer{}, err
		}
		a, length, chunked, err := parseHead(head)
		if err != nil {
			return answer{}, err
		}
		switch {
		case a.status == 101:
			return answer{}, fmt.Errorf("%w: it changes the protocol", errHTTP)
		case a.status < 200: // an interim response; the final one follows
			continue
		case a.status == 204 || a.status == 304:
		case chunked:
			a.body, err = r.chunks()
		case length >= 0:
			a.body, err = r.take(length)
		default:
			a.keep = false
			a.body, err = r.rest()
		}
		return a, err
	}
}

// parseHead parses the status line and the headers that determine the end of the
// body. length is -1 if there is no Content-Length.
func parseHead(head []byte) (a answer, length int, chunked bool, err error) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	// HTTP/1.x NNN …
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return a, 0, false, fmt.Errorf("%w: no status line", errHTTP)
	}
	a.status, err = strconv.Atoi(string(line[9:12]))
	if err != nil || a.status < 100 || bytes.IndexByte(line, '\n') >= 0 {
		return a, 0, false, fmt.Errorf("%w: no status", errHTTP)
	}
	http11 := line[7] != '0' // HTTP/1.0 has no chunks and no keep-alive
	a.keep = http11
	length = -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || bytes.IndexByte(line, '\n') >= 0 {
			return a, 0, false, fmt.Errorf("%w: a header without a colon, or with a bare line end in it", errHTTP)
		}
		value = bytes.Trim(value, " \t")
		switch {
		case equalFold(name, "content-length"):
			n, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil || n > maxBody || length >= 0 && int(n) != length {
				return a, 0, false, fmt.Errorf("%w: content-length is not a length up to %d", errHTTP, maxBody)
			}
			length = int(n)
		case equalFold(name, "transfer-encoding"):
			if !equalFold(value, "chunked") || !http11 {
				return a, 0, false, fmt.Errorf("%w: an unknown transfer encoding", errHTTP)
			}
			chunked = true
		case equalFold(name, "connection"):
			a.keep = a.keep && !equalFold(value, "close")
		}
	}
	return a, length, chunked, nil
}

// equalFold compares with a lower-case ASCII word. It is cheaper than bytes.EqualFold.
func equalFold(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i := range text {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// head consumes and returns the text up to the empty line.
func (r *answerReader) head() ([]byte, error) {
	searched := 0
	for {
		have := r.buf[r.from:r.to]
		if at := bytes.Index(have[searched:], []byte("\r\n\r\n")); at >= 0 {
			end := searched + at
			r.from += end + 4
			return have[:end], nil
		}
		if len(have) > maxHead {
			return nil, fmt.Errorf("%w: headers over %d bytes", errHTTP, maxHead)
		}
		searched = max(0, len(have)-3)
		if err := r.more(len(have) + 1); err != nil {
			return nil, err
		}
	}
}

// take consumes and returns the next n bytes.
func (r *answerReader) take(n int) ([]byte, error) {
	for r.to-r.from < n {
		if err := r.more(n); err != nil {
			return nil, err
		}
	}
	r.from += n
	return r.buf[r.from-n : r.from], nil
}

// chunks consumes a chunked body with its trailers and returns the joined body.
func (r *answerReader) chunks() ([]byte, error) {
	r.joined = r.joined[:0]
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.Trim(digits, " \t")), 16, 31)
		if err != nil || len(r.joined)+int(n) > maxBody {
			return nil, fmt.Errorf("%w: a chunk without a size, or a body over %d bytes", errHTTP, maxBody)
		}
		if n == 0 {
			break
		}
		piece, err := r.take(int(n) + 2)
		if err != nil {
			return nil, err
		}
		if piece[n] != '\r' || piece[n+1] != '\n' {
			return nil, fmt.Errorf("%w: a chunk that does not end where it says", errHTTP)
		}
		r.joined = append(r.joined, piece[:n]...)
	}
	for {
		line, err := r.line()
		if err != nil || len(line) == 0 {
			return r.joined, err
		}
	}
}

// line consumes and returns the text up to the next line end.
func (r *answerReader) line() ([]byte, error) {
	for {
		have := r.buf[r.from:r.to]
		if at := bytes.Index(have, []byte("\r\n")); at >= 0 {
			r.from += at + 2
			return have[:at], nil
		}
		if len(have) > maxHead {
			return nil, fmt.Errorf("%w: a line over %d bytes", errHTTP, maxHead)
		}
		if err := r.more(len(have) + 1); err != nil {
			return nil, err
		}
	}
}

// rest returns everything up to the end of the connection.
func (r *answerReader) rest() ([]byte, error) {
	for {
		if r.to-r.from > maxBody {
			return nil, fmt.Errorf("%w: a body over %d bytes", errHTTP, maxBody)
		}
		switch err := r.more(r.to - r.from + 1); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			body := r.buf[r.from:r.to]
			r.from = r.to
			return body, nil
		case err != nil:
			return nil, err
		}
	}
}

// more reads at least one byte into a buffer with a capacity of at least want bytes.
func (r *answerReader) more(want int) error {
	if r.from == r.to {
		r.from, r.to = 0, 0
	}
	if want > len(r.buf)-r.from {
		if want > len(r.buf) {
			// Slightly larger, so that a body of this size and its head fit the next time.
			grown := make([]byte, max(want+4<<10, 2*len(r.buf)))
			r.to = copy(grown, r.buf[r.from:r.to])
			r.buf = grown
		} else {
			r.to = copy(r.buf, r.buf[r.from:r.to])
		}
		r.from = 0
	}
	n, err := r.source.Read(r.buf[r.to:])
	r.to += n
	switch {
	case n > 0:
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}
