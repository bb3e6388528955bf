package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/launch"
)

// dial is the address of an engine and how to connect to it. Access to an engine is root on its
// host, so network connections require certificates.
type dial struct {
	Host  string `json:"host"`
	Certs string `json:"certs,omitempty"`
	shown string
	proto string
	addr  string
	tls   *tls.Config
}

func newDial(host, certs string) (*dial, error) {
	if host == "" {
		host = os.Getenv(client.EnvOverrideHost)
	}
	if host == "" {
		host = client.DefaultDockerHost
	}
	if certs == "" {
		certs = os.Getenv(client.EnvOverrideCertPath)
	}
	url, err := client.ParseHostURL(host)
	if err != nil {
		return nil, launch.Failed("The container engine's address is invalid: %w; write unix:///run/docker.sock or tcp://HOST:2376.", err)
	}
	d := &dial{Host: host, proto: url.Scheme, addr: url.Host, shown: url.Scheme + "://" + url.Host}
	switch url.Scheme {
	case "unix":
		return d, nil
	case "tcp":
	default:
		return nil, launch.Failed("The container engine's address begins with %q, which is not supported; write unix:// or tcp://.", url.Scheme)
	}
	name, _, err := net.SplitHostPort(d.addr)
	if err != nil {
		return nil, launch.Failed("The container engine's address %q has no port; write tcp://HOST:2376.", d.shown)
	}
	if certs == "" {
		if !urls.Loopback(name) {
			return nil, launch.Failed("The container engine at %s has no certificates configured, and access without them means root there; set its certificates (a directory with ca.pem, cert.pem and key.pem).", d.shown)
		}
		return d, nil
	}
	d.Certs = certs
	if d.tls, err = loadTLS(certs, name); err != nil {
		return nil, launch.Failed("The certificates for the container engine at %s cannot be used: %w.", d.shown, err)
	}
	return d, nil
}

func loadTLS(dir, name string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("ca.pem contains no certificate")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}, nil
}

// note returns the information with which the reaper removes the owner's containers; see [Sweep].
func (d *dial) note(owner string) string {
	text, err := json.Marshal(struct {
		dial
		Owner string `json:"owner"`
	}{*d, owner})
	if err != nil {
		panic(err) // strings always encode
	}
	return string(text)
}

// client returns a client that connects with dial.open, also for TLS, so that every connection can be
// closed.
func (d *dial) client() (*client.Client, error) {
	return client.New(client.WithHost(d.Host), client.WithScheme("http"), client.WithDialContext(d.open), client.WithUserAgent("callyard"))
}

// held is a context value of a dial whose connection is taken over. It can close the connection
// while the engine hangs.
type held struct {
	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

type heldKey struct{}

func (h *held) set(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conn = conn
	if h.closed {
		conn.Close()
	}
}

func (h *held) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.conn != nil {
		h.conn.Close()
	}
}

func (d *dial) open(ctx context.Context, _, _ string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: openTimeout, KeepAlive: 30 * time.Second}
	conn, err := dialer.DialContext(ctx, d.proto, d.addr)
	if err != nil {
		return nil, err
	}
	if d.tls != nil {
		secure := tls.Client(conn, d.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = secure
	}
	if h, ok := ctx.Value(heldKey{}).(*held); ok {
		h.set(conn)
	}
	return conn, nil
}
