// Package tlsfiles reads the PEM files that Callyard uses as a TLS client: root certificates,
// client certificate and key. It reads the root certificates once, and the others again at each
// handshake: a process that lives longer than its certificate must be able to reconnect.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
)

// Client returns a configuration that trusts the root certificates in the file ca instead of
// the system's, and presents the client certificate in the file cert with the key in the file key.
// If ca or cert is empty, that part is omitted. of names the server in errors.
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
	if cert != "" {
		p := &pair{cert: cert, key: key}
		if err := p.load(); err != nil {
			return nil, fmt.Errorf("reading the client certificate for %s: %w", of, err)
		}
		c.GetClientCertificate = p.get
	}
	return c, nil
}

// pair is a client certificate with its key. It is safe for concurrent use.
type pair struct {
	cert, key string

	mu  sync.Mutex
	now *tls.Certificate
}

func (p *pair) load() error {
	now, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err == nil {
		p.now = &now
	}
	return err
}

// get returns the pair of the files, or the previous one if they do not match, because perhaps only one
// of them was written yet.
func (p *pair) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.load()
	return p.now, nil
}
