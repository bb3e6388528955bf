package egress

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// discardConn takes what is written.
type discardConn struct{}

func (discardConn) Write(p []byte) (int, error) { return len(p), nil }
func (discardConn) Close() error                { return nil }

func FuzzProxyInputFromASandbox(f *testing.F) {
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	// A request for /ready, then one that opens a connection, with data that never ends.
	headers := func(path string) string {
		block := "\x83\x86\x41\x06worker\x04" + string(rune(len(path))) + path
		return "\x00\x00" + string(rune(len(block))) + "\x01\x04\x00\x00\x00\x01" + block
	}
	f.Add([]byte(""))
	f.Add([]byte(preface))
	f.Add([]byte(preface + headers(readyPath)))
	f.Add([]byte(preface + headers(openPath) + "\x00\x00\x04\x00\x00\x00\x00\x00\x01data"))
	f.Add([]byte(preface + "\xff\xff\xff\x01\x04\x00\x00\x00\x01"))
	f.Add([]byte("GET /open HTTP/1.1\r\nHost: worker\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		tunnel, err := OpenTunnel(ctx, discardConn{}, io.NopCloser(bytes.NewReader(said)))
		if ctx.Err() != nil {
			t.Fatalf("%q holds the worker up", said)
		}
		if err != nil {
			return
		}
		if conn, err := tunnel.Accept(); err == nil {
			_ = conn.Close()
		}
		if err := tunnel.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzSplitHostPort(f *testing.F) {
	for _, seed := range []string{"a.example:443", "[::1]:80", "a:0", "a:65536", "a:+1", ":1", "a b:1", "a\x00:1", "[::ffff:127.0.0.1]:80", "a.:80", "A:080"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		host, port, ok := split(target)
		if !ok {
			return
		}
		if host == "" || port == 0 {
			t.Fatalf("%q is host %q and port %d", target, host, port)
		}
		if _, _, err := net.SplitHostPort(target); err != nil {
			t.Fatalf("%q is taken: %v", target, err)
		}
	})
}
