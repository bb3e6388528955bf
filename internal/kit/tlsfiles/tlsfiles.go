// Package tlsfiles reads the PEM files that Callyard uses as a TLS client: root certificates,
// client certificate and key. It reads them once. A renewed certificate requires a new connection.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
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
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for %s: %w", of, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
