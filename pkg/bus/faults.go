package bus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	fixUnreachable = "start a server there (nats-server -js -a 127.0.0.1), or set another address with --nats"
	fixCredential  = "NATS refuses the credential of this process: correct nats.user and nats.password, nats.token, nats.credentials_file or nats.nkey_seed_file, and restart it, or correct the users of NATS"
	fixPermission  = "NATS denies this process the subject: load deploy/nats/permissions.conf of this version into NATS, run `callyard init`, and check that the NATS user of this process has the permissions of its role"
	fixOperator    = "NATS denies this user the subject: run the command as a NATS user that may create streams, such as operator of deploy/nats"
	fixTLS         = "check nats.ca_file, nats.cert_file and nats.key_file, and that the certificate of NATS is valid for the host name in nats.url"
)

// refused reports whether the server rejected the credential.
func refused(err error) bool {
	for _, known := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, known) {
			return true
		}
	}
	// The rejection of a connection's first message has no typed error.
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization violation")
}

// fixOf returns the fix for a failed connection.
func fixOf(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case refused(err):
		return fixCredential
	case errors.Is(err, nats.ErrTLS), errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted),
		errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid),
		strings.Contains(err.Error(), "tls: "): // a TLS alert of the server has an unexported type
		return fixTLS
	}
	return fixUnreachable
}

// denials reports to requests that NATS denies their subject. NATS does not answer a denied request, so
// that it would look like one that NATS is too busy for. It is safe for concurrent use.
type denials struct {
	mu   sync.Mutex
	told map[*denial]string // the subject of each request in progress
	// calls is set while NATS denies this connection the calls of a server.
	calls bool
}

// err returns an error while this process cannot receive the calls that it serves.
func (d *denials) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls {
		return fmt.Errorf("%w (%s)", errDenied, subjectServe+"*")
	}
	return nil
}

// reset forgets the denied subscriptions. A new connection subscribes again.
func (d *denials) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = false
}

type denial struct{ tell context.CancelCauseFunc }

// errDenied means that NATS denies the subject of a request.
var errDenied = errors.New(fixPermission)

// while calls f. If NATS denies the subject meanwhile, ctx ends, and while returns errDenied.
func (d *denials) while(ctx context.Context, subject string, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := &denial{cancel}
	d.mu.Lock()
	if d.told == nil {
		d.told = map[*denial]string{}
	}
	d.told[one] = subject
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.told, one)
	}()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errDenied) {
		return context.Cause(ctx)
	}
	return err
}

// report handles an error that NATS reports.
func (d *denials) report(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = d.calls || strings.Contains(err.Error(), `Subscription to "`+subjectServe)
	// Without its inbox, a process with the user of another role gets no answer to any request.
	all := strings.Contains(err.Error(), `"`+inbox)
	for one, subject := range d.told {
		if all || strings.Contains(err.Error(), strconv.Quote(subject)) {
			one.tell(fmt.Errorf("%w (%s)", errDenied, subject))
		}
	}
}

const (
	logAgain  = time.Minute // interval after which the same fault is logged again
	maxFaults = 20          // maximum number of faults logged per interval
)

// faults logs errors that NATS reports. An error that repeats with each message or attempt is
// logged once a minute, with the number of omitted errors. It is safe for concurrent use.
type faults struct {
	log       *slog.Logger
	fixDenied string // the fix for a denied subject

	mu    sync.Mutex
	since time.Time
	seen  map[string]bool
	left  int
}

func (f *faults) report(subject string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	left := 0
	if f.seen == nil || now.Sub(f.since) >= logAgain {
		left = f.left
		f.since, f.seen, f.left = now, make(map[string]bool), 0
	}
	key := subject + " " + err.Error()
	if f.seen[key] || len(f.seen) >= maxFaults {
		f.left++
		return
	}
	f.seen[key] = true
	args := []any{"error", err}
	if subject != "" {
		args = append([]any{"subject", subject}, args...)
	}
	switch {
	case refused(err):
		args = append(args, "fix", fixCredential)
	case errors.Is(err, nats.ErrPermissionViolation):
		args = append(args, "fix", f.fixDenied)
	}
	if left > 0 {
		args = append(args, "left_out", left)
	}
	f.log.Error("NATS reported an error", args...)
}

// again resets the limit, so that the next fault is logged.
func (f *faults) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = nil
}
