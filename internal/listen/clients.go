package listen

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// authorities holds the authorities of client certificates as read from their file. It is safe for
// concurrent use.
type authorities struct {
	file string
	log  *slog.Logger

	mu    sync.Mutex
	now   *tls.Config // for new connections
	stamp time.Time   // modification time of the file that was last read
}

// load adds the authorities in the file to the TLS configuration of connections.
func (a *authorities) load() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	info, err := os.Stat(a.file)
	if err != nil {
		return fmt.Errorf("reading the authorities of client certificates: %w; check client_ca_file", err)
	}
	return a.loadAt(info.ModTime())
}

func (a *authorities) loadAt(stamp time.Time) error {
	a.stamp = stamp
	text, err := os.ReadFile(a.file)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("it has no certificate in PEM form")
	}
	if err != nil {
		return fmt.Errorf("reading the authorities of client certificates in %s: %w", a.file, err)
	}
	c := a.now.Clone()
	c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, pool
	// A session ticket would let a client resume with authorities that were removed from the file.
	c.SessionTicketsDisabled = true
	a.now = c
	return nil
}

// get is called for each handshake.
func (a *authorities) get(*tls.ClientHelloInfo) (*tls.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if info, err := os.Stat(a.file); err == nil && !info.ModTime().Equal(a.stamp) {
		if err := a.loadAt(info.ModTime()); err != nil {
			a.log.Warn("reading the changed authorities of client certificates failed; the previous ones are used until the file changes again", "error", err)
		}
	}
	return a.now, nil
}
