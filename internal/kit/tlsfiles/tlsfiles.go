// Package tlsfiles reads the PEM files with which Callyard, as a client, proves a server
// and itself. It reads them once: whoever renews one connects again.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Client returns a configuration that trusts the certificates of the file ca instead of
// the system's, and that shows the certificate of the file cert with the key of the file
// key. An empty ca or cert leaves that out. of names the server, for errors.
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
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for %s: %w", of, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
