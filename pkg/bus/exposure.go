package bus

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// The danger of a NATS server that requires no credential, and the fix. They are used in the
// warning at startup and in reports.
const (
	ExposedDanger = "anyone who can reach it can run every tool, without a key and without approval"
	ExposedFix    = "start it with -a 127.0.0.1, or with the users and permissions of deploy/nats (docs/how-to/deployment.md)"
)

// Exposure describes the clients that can reach a NATS server, the credentials that it requires, and
// whether it stores anything.
type Exposure struct {
	// Address is the address of the server.
	Address string
	// Credential means that it requires a credential or a client certificate.
	Credential bool
	// Beyond means that it listens on more than loopback.
	Beyond bool
	// JetStream means that JetStream is on, so that the server can store streams.
	JetStream bool
	// Cluster is the name of its cluster, or "".
	Cluster string
	// Err is the reason why the requirements could not be read, or nil. It is [ErrSilent] if the
	// server accepted the connection and sent nothing.
	Err error
}

// ErrSilent means that a server accepts connections and sends nothing. The kernel accepts them for a
// process that is stopped.
var ErrSilent = errors.New("it accepts connections and does not respond")

const (
	exposureTimeout = 2 * time.Second
	natsPort        = "4222"
	// longestInfo is larger than the INFO message of any server, which lists its cluster.
	longestInfo = 64 << 10
)

// Exposures reads the requirements for clients of each server in urls, a comma-separated list
// as in [Options.URL]. It does not log in.
func Exposures(ctx context.Context, urls string) []Exposure {
	var found []Exposure
	for address := range strings.SplitSeq(urls, ",") {
		found = append(found, exposure(ctx, strings.TrimSpace(address)))
	}
	return found
}

func exposure(ctx context.Context, address string) Exposure {
	if !strings.Contains(address, "://") {
		address = "nats://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return Exposure{Address: address, Err: fmt.Errorf("%q is not a NATS URL", address)}
	}
	port := u.Port()
	if port == "" {
		port = natsPort
	}
	e := Exposure{Address: net.JoinHostPort(u.Hostname(), port)}
	e.Err = e.read(ctx)
	if errors.Is(e.Err, ErrSilent) && usesTLSFirst(ctx, e.Address, u.Hostname()) {
		e.Err = errors.New("it uses TLS from the first byte")
	}
	return e
}

// read reads the first message of the server.
func (e *Exposure) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, exposureTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.Address)
	if err != nil {
		return fmt.Errorf("connecting to the NATS server: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing was written
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("limiting the time of the NATS server %s: %w", e.Address, err)
	}
	line, err := bufio.NewReader(io.LimitReader(conn, longestInfo)).ReadString('\n')
	var info struct {
		Host        string `json:"host"`
		Auth        bool   `json:"auth_required"`
		Certificate bool   `json:"tls_verify"`
		JetStream   bool   `json:"jetstream"`
		Cluster     string `json:"cluster"`
	}
	said, isInfo := strings.CutPrefix(line, "INFO ")
	switch {
	case line == "" && errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSilent
	case err != nil:
	case !isInfo:
		err = errors.New("it does not respond like a NATS server")
	default:
		err = json.Unmarshal([]byte(said), &info)
	}
	if err != nil {
		return fmt.Errorf("reading the first message of %s: %w", e.Address, err)
	}
	e.Credential = info.Auth || info.Certificate
	e.JetStream, e.Cluster = info.JetStream, info.Cluster
	e.Beyond = !loopback(conn.RemoteAddr()) || !loopbackHost(info.Host)
	return nil
}

// usesTLSFirst reports whether a server that sends nothing by itself responds to the first message of
// TLS.
func usesTLSFirst(ctx context.Context, address, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, exposureTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close() // nothing was written
	}
	return ctx.Err() == nil // an invalid certificate is a response too
}

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// loopbackHost reports whether a server that listens on the host is reachable only on loopback.
func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// AsksForCredential reports whether the server of the connection requires a credential.
func (c *Conn) AsksForCredential() bool { return c.nc.AuthRequired() }
