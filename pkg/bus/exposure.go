package bus

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// The danger of a NATS server that requires no credential, and the fix. They are used in the
// warning at startup and in reports.
const (
	ExposedDanger = "anyone who can reach it can run every tool, without a key and without approval"
	ExposedFix    = "start it with -a 127.0.0.1, or with the users and permissions of deploy/nats (docs/how-to/deployment.md)"
)

// Exposure describes the clients that can reach a NATS server, and the credentials that it
// requires.
type Exposure struct {
	// Address is the address of the server.
	Address string
	// Credential means that it requires a credential or a client certificate.
	Credential bool
	// Beyond means that it listens on more than loopback.
	Beyond bool
}

const (
	exposureTimeout = 2 * time.Second
	natsPort        = "4222"
	// longestInfo is larger than the INFO message of any server, which lists its cluster.
	longestInfo = 64 << 10
)

// Exposures reads the requirements for clients of each server in urls, a comma-separated list
// as in [Options.URL]. It does not log in. It returns an error for a server that does not
// respond within two seconds or that uses TLS from the first byte.
func Exposures(ctx context.Context, urls string) ([]Exposure, error) {
	var found []Exposure
	for address := range strings.SplitSeq(urls, ",") {
		e, err := exposure(ctx, strings.TrimSpace(address))
		if err != nil {
			return found, err
		}
		found = append(found, e)
	}
	return found, nil
}

func exposure(ctx context.Context, address string) (Exposure, error) {
	if !strings.Contains(address, "://") {
		address = "nats://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return Exposure{}, fmt.Errorf("%q is not a NATS URL", address)
	}
	port := u.Port()
	if port == "" {
		port = natsPort
	}
	e := Exposure{Address: net.JoinHostPort(u.Hostname(), port)}
	ctx, cancel := context.WithTimeout(ctx, exposureTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.Address)
	if err != nil {
		return e, fmt.Errorf("reading the NATS server's requirements for clients: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing was written
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return e, fmt.Errorf("reading the requirements for clients of the NATS server %s: %w", e.Address, err)
	}
	line, err := bufio.NewReader(io.LimitReader(conn, longestInfo)).ReadString('\n')
	var info struct {
		Host        string `json:"host"`
		Auth        bool   `json:"auth_required"`
		Certificate bool   `json:"tls_verify"`
	}
	said, isInfo := strings.CutPrefix(line, "INFO ")
	switch {
	case err != nil:
	case !isInfo:
		err = errors.New("it does not respond like a NATS server")
	default:
		err = json.Unmarshal([]byte(said), &info)
	}
	if err != nil {
		return e, fmt.Errorf("reading the first message of %s: %w", e.Address, err)
	}
	e.Credential = info.Auth || info.Certificate
	e.Beyond = !loopback(conn.RemoteAddr()) || !loopbackHost(info.Host)
	return e, nil
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
