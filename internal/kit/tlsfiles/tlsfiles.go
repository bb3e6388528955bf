// Package tlsfiles reads the PEM files that Callyard uses for TLS. It reads the root certificates
// of a client once. It reads a certificate and its key again when their files change: a process
// that lives longer than its certificate must be able to complete handshakes.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Client returns a configuration that trusts the root certificates in the file ca instead of
// the system's, and presents the client certificate in the file cert with the key in the file key.
// If ca is empty, or cert and key are, that part is omitted. of names the server in errors.
func Client(of, ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("reading the CA certificates for %s: %w", of, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no PEM certificate", ca)
		}
	}
	if cert != "" || key != "" {
		p, err := ReadPair(cert, key, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for %s: %w", of, err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.Current(), nil }
	}
	return c, nil
}

// Pair is a certificate and its key as read from their files. It is safe for concurrent use.
type Pair struct {
	cert, key string
	log       *slog.Logger

	mu    sync.Mutex
	now   *tls.Certificate
	stamp [2]time.Time // modification times of the files that were last read
}

// ReadPair reads a certificate and its key. Later errors go to log.
func ReadPair(cert, key string, log *slog.Logger) (*Pair, error) {
	p := &Pair{cert: cert, key: key, log: log}
	return p, p.readAt(p.stamps())
}

// Current returns the pair of the files, or the previous one if the files cannot be used.
func (p *Pair) Current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stamp := p.stamps(); stamp != p.stamp {
		if err := p.readAt(stamp); err != nil {
			// Perhaps only one of the two files was written yet.
			p.log.Warn("reading the renewed certificate failed; the previous one is used until the files change again", "error", err)
		}
	}
	return p.now
}

func (p *Pair) readAt(stamp [2]time.Time) error {
	p.stamp = stamp
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err == nil {
		p.now = &c
	}
	return err
}

// stamps returns the zero time for a file that does not exist.
func (p *Pair) stamps() (at [2]time.Time) {
	for i, name := range []string{p.cert, p.key} {
		if info, err := os.Stat(name); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}
