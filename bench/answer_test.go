package bench

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type readAnswer struct {
	Status int
	Body   string
	Keep   bool
}

func readAll(source io.Reader, n int) ([]readAnswer, error) {
	r := newAnswerReader(source)
	var all []readAnswer
	for range n {
		a, err := r.next()
		if err != nil {
			return all, err
		}
		all = append(all, readAnswer{a.status, string(a.body), a.keep})
	}
	return all, nil
}

func TestResponsesEndByLengthChunksOrClose(t *testing.T) {
	for name, c := range map[string]struct {
		wire string
		want []readAnswer
	}{
		"Content-Length":                       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", []readAnswer{{200, "hello", true}}},
		"two on one connection":                {"HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nabHTTP/1.1 404 Not Found\r\nCONTENT-LENGTH: 1 \r\n\r\nc", []readAnswer{{200, "ab", true}, {404, "c", true}}},
		"chunked body":                         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", []readAnswer{{200, "abc0123456789", true}}},
		"chunked body with trailers":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", []readAnswer{{200, "a", true}, {204, "", true}}},
		"body until the connection closes":     {"HTTP/1.1 200 OK\r\n\r\nto the end", []readAnswer{{200, "to the end", false}}},
		"close":                                {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", []readAnswer{{200, "a", false}}},
		"HTTP/1.0":                             {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", []readAnswer{{200, "a", false}}},
		"interim response before the response": {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", []readAnswer{{200, "a", true}}},
		"no reason phrase":                     {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", []readAnswer{{200, "", true}}},
		"body larger than the buffer":          {"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("x", 20000), []readAnswer{{200, strings.Repeat("x", 20000), true}}},
	} {
		t.Run(name, func(t *testing.T) {
			for how, source := range map[string]io.Reader{
				"all bytes in one read":        strings.NewReader(c.wire),
				"bytewise":                     iotest.OneByteReader(strings.NewReader(c.wire)),
				"last bytes together with EOF": iotest.DataErrReader(strings.NewReader(c.wire)),
			} {
				got, err := readAll(source, len(c.want))
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%s: %s", how, d)
				}
			}
		})
	}
}

func TestTruncatedOrMalformedResponsesAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		wire string
		want error
	}{
		"nothing":                       {"", io.ErrUnexpectedEOF},
		"truncated header":              {"HTTP/1.1 200 OK\r\nContent-Le", io.ErrUnexpectedEOF},
		"truncated body":                {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", io.ErrUnexpectedEOF},
		"truncated chunked body":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", io.ErrUnexpectedEOF},
		"chunk size exceeds the limit":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", errHTTP},
		"chunk size is not a number":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", errHTTP},
		"unsupported transfer encoding": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", errHTTP},
		"two lengths":                   {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", errHTTP},
		"negative length":               {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", errHTTP},
		"huge length":                   {"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", errHTTP},
		"protocol change":               {"HTTP/1.1 101 Switching Protocols\r\n\r\n", errHTTP},
		"not HTTP":                      {"SSH-2.0-OpenSSH_9.6\r\n\r\n", errHTTP},
		"header exceeds the limit":      {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead+10), errHTTP},
		"header without a colon":        {"HTTP/1.1 200 OK\r\nfoo\r\n\r\n", errHTTP},
		"status line without CR":        {"HTTP/1.1 200 OK\n\r\n\r\n", errHTTP},
		"chunked body in HTTP/1.0":      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", errHTTP},
		"status is not a number":        {"HTTP/1.1 abc OK\r\n\r\n", errHTTP},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := readAll(strings.NewReader(c.wire), 1); !errors.Is(err, c.want) {
				t.Errorf("read %v, error %v, want %v", got, err, c.want)
			}
		})
	}
}

// FuzzAnswer compares with net/http: responses that both accept must be parsed alike.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 500 No\r\n\r\nrest"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		got, err := readAll(bytes.NewReader(wire), 1)
		if err != nil {
			return
		}
		buffered := bufio.NewReader(bytes.NewReader(wire))
		for {
			response, err := http.ReadResponse(buffered, &http.Request{Method: http.MethodPost})
			if err != nil {
				return
			}
			body, err := io.ReadAll(response.Body)
			if errors.Join(err, response.Body.Close()) != nil {
				return
			}
			if response.StatusCode < 200 {
				continue
			}
			if response.StatusCode != got[0].Status || string(body) != got[0].Body {
				t.Fatalf("read %d %q, net/http %d %q", got[0].Status, got[0].Body, response.StatusCode, body)
			}
			return
		}
	})
}
