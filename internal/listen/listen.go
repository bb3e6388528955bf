// Package listen opens the addresses on which Callyard serves HTTP, over TLS if a certificate is
// set.
//
// A certificate that is renewed in its files is used for new connections without a restart. If it
// cannot be read, the previous one remains in use. Over TLS 1.2 and 1.3 the package offers
// HTTP/1.1; for HTTP/2, put a proxy in front of it. If a file of certificate authorities is set, it
// requests a client certificate and refuses one that none of them issued. A client may present
// none.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/tlsfiles"
)

// TLS holds the PEM files of an address. The zero value serves plain HTTP.
type TLS struct {
	// Cert is the certificate with its chain, Key its key.
	Cert, Key string
	// ClientCAs holds the authorities of client certificates. If empty, clients are not asked for a
	// certificate. Like the other files, it is read again when it changes.
	ClientCAs string
}

// Validate returns the faults of the keys cert_file and key_file of a section.
func Validate(certFile, keyFile string) []config.Fault {
	switch {
	case certFile != "" && keyFile == "":
		return []config.Fault{config.Faultf("key_file", "is missing: set the file with the key of cert_file, or omit cert_file.")}
	case certFile == "" && keyFile != "":
		return []config.Fault{config.Faultf("cert_file", "is missing: set the file with the certificate of key_file, or omit key_file.")}
	}
	return nil
}

// Scheme returns the URL scheme of addresses that are served with this certificate.
func Scheme(certFile string) string {
	if certFile == "" {
		return "http"
	}
	return "https"
}

// Open listens on an address, over TLS if files contains a certificate. ctx limits the time to open
// it. The TLS handshake happens at the first use of a connection, so that the server's timeouts
// apply to it.
func Open(ctx context.Context, address string, files TLS, log *slog.Logger) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return On(l, files, log)
}

// On is Open for an existing listener. It closes l on an error.
func On(l net.Listener, files TLS, log *slog.Logger) (net.Listener, error) {
	if files.Cert == "" {
		return l, nil
	}
	shown, err := tlsfiles.ReadPair(files.Cert, files.Key, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the certificate for TLS in %s and its key in %s: %w", files.Cert, files.Key, err), l.Close())
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shown.Current(), nil }}
	if files.ClientCAs != "" {
		a := &authorities{file: files.ClientCAs, log: log, now: c.Clone()}
		if err := a.load(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		c.GetConfigForClient = a.get
	}
	return tls.NewListener(l, c), nil
}
