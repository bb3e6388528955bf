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

// What a NATS server that asks for no credential means, and what closes it: for the
// warning at a start and for reports.
const (
	ExposedDanger = "anyone who can reach it can run every tool, without a key and without approval"
	ExposedFix    = "start it with -a 127.0.0.1, or with the users and permissions of deploy/nats (docs/how-to/deployment.md)"
)

// Exposure is who can reach a NATS server, and what it asks of them.
type Exposure struct {
	// Address is that of the server.
	Address string
	// Credential: it asks for one, or for a certificate of the client.
	Credential bool
	// Beyond: it listens beyond loopback.
	Beyond bool
}

const (
	exposureTimeout = 2 * time.Second
	natsPort        = "4222"
	// longestInfo is more than a server says of itself: it lists its cluster.
	longestInfo = 64 << 10
)

// Exposures asks each server of a list of addresses with commas between, as
// [Options.URL] is one, what it asks of clients. It signs in nowhere. A server that does
// not answer within two seconds, or that speaks TLS from the first byte, is an error.
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

// loopbackHost says whether a server that listens on the host is on loopback alone.
func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// AsksForCredential says whether the server of the connection let nobody in without one.
func (c *Conn) AsksForCredential() bool { return c.nc.AuthRequired() }
