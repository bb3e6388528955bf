package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOnlyCertificatesOfTheCAFileAreTrusted(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ca      string
		trusted bool
	}{{ca, true}, {"", false}} {
		config, err := Client("the server", c.ca, "", "")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
		if (err == nil) != c.trusted {
			t.Errorf("with the file %q: %v", c.ca, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// TestARenewedClientCertificateIsPresentedInTheNextHandshake replaces the files one after the other.
func TestARenewedClientCertificateIsPresentedInTheNextHandshake(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first, second := issue(t, 1), issue(t, 2)
	written := time.Now().Truncate(time.Second)
	write := func(file string, text []byte) {
		t.Helper()
		written = written.Add(time.Second)
		if err := errors.Join(os.WriteFile(file, text, 0o600), os.Chtimes(file, written, written)); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].SerialNumber)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(dir, "ca.pem")
	write(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	write(cert, first.cert)
	write(key, first.key)
	config, err := Client("the server", ca, cert, key)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	presented := func(when, want string) {
		t.Helper()
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
			t.Errorf("%s: certificate %s, %v, want %s", when, got, err, want)
		}
	}
	presented("at first", "1")
	write(cert, second.cert)
	presented("before its key is written", "1")
	write(key, second.key)
	presented("after the renewal", "2")
}

type issued struct{ cert, key []byte }

// issue returns a certificate that signs itself.
func issue(t *testing.T, serial int64) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

func TestErrorNamesTheUnusableFile(t *testing.T) {
	dir := t.TempDir()
	none, empty := filepath.Join(dir, "none.pem"), filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ca, cert, want string }{
		{none, "", "reading the CA certificates for Redis: open " + none},
		{empty, "", empty + " contains no PEM certificate"},
		{"", none, "reading the client certificate for Redis: open " + none},
	} {
		if _, err := Client("Redis", c.ca, c.cert, c.cert); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
