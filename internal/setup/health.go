package setup

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/listen"
)

// healthWithin limits the duration of a health check.
const healthWithin = 5 * time.Second

// addHealthCheck declares --health-check.
func addHealthCheck(fs *pflag.FlagSet) {
	fs.Bool("health-check", false, "check the readiness of the local process with this configuration, and exit with 0 or 1 (for container health checks)")
}

// healthCheck runs the check of --health-check. asked is false without the flag. code is the exit
// status: 0 if the process of the role is ready, 1 if it is not ready or cannot be reached, and
// 2 if the configuration has faults. Errors go to standard error.
func healthCheck(fs *pflag.FlagSet, name string, role Role) (asked bool, code int) {
	if asked, err := fs.GetBool("health-check"); err != nil || !asked {
		return false, 0
	}
	c, err := Load(fs)
	if err != nil {
		Fail(os.Stderr, name, err)
		return true, 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthWithin)
	defer cancel()
	if err := c.checkHealth(ctx, role); err != nil {
		Fail(os.Stderr, name, err)
		return true, 1
	}
	return true, 0
}

// checkHealth requests /readyz from the listen address of the role.
func (c *Config) checkHealth(ctx context.Context, role Role) error {
	var address, cert string
	switch role {
	case FrontDoor:
		address, cert = c.FrontDoor.Listen, c.FrontDoor.CertFile
	case Approver:
		address, cert = c.Approver.Listen, c.Approver.CertFile
	default:
		if address = c.Worker.Listen; address == "" {
			return fmt.Errorf("a worker answers health checks at worker.listen, which is not set")
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the address %s: %w", address, err)
	}
	if at, err := netip.ParseAddr(host); host == "" || err == nil && at.IsUnspecified() {
		host = "127.0.0.1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, listen.Scheme(cert)+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// The certificate is for the public name, not for this address. The request carries no secret.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // for the message only
		return fmt.Errorf("not ready: %s %s", resp.Status, text)
	}
	return nil
}
