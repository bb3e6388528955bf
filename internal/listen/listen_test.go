package listen_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/listen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// certificate writes a certificate for 127.0.0.1 with a serial number, and sets the time of its files.
func certificate(t *testing.T, dir string, serial int64, at time.Time) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, cert, text, at)
	write(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), at)
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return cert, key, roots
}

func write(t *testing.T, path string, text []byte, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// serve serves until the test ends.
func serve(t *testing.T, l net.Listener) {
	t.Helper()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Proto)) }), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
}

// serial returns the serial number of the certificate that a new connection gets.
func serial(t *testing.T, address string, roots *x509.CertPool) int64 {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.ProtoMajor != 1 {
		t.Errorf("the answer is %s", resp.Proto)
	}
	return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
}

func TestRenewedCertificateIsServedAndUnreadableOneIsNot(t *testing.T) {
	dir, began := t.TempDir(), time.Now().Add(-time.Hour)
	cert, key, first := certificate(t, dir, 1, began)
	var said bytes.Buffer
	l, err := listen.Open(t.Context(), "127.0.0.1:0", listen.TLS{Cert: cert, Key: key}, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	address := l.Addr().String()
	if got := serial(t, address, first); got != 1 {
		t.Errorf("certificate %d is shown", got)
	}

	write(t, cert, []byte("half of it"), began.Add(time.Minute))
	for range 2 {
		if got := serial(t, address, first); got != 1 {
			t.Errorf("certificate %d is shown while its file is broken", got)
		}
	}
	if n := strings.Count(said.String(), "the previous one is used"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, said.String())
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if got := serial(t, address, first); got != 1 {
		t.Errorf("certificate %d is shown while a file is missing", got)
	}

	_, _, second := certificate(t, dir, 2, began.Add(2*time.Minute))
	if got := serial(t, address, second); got != 2 {
		t.Errorf("certificate %d is shown after its renewal", got)
	}
}

func TestWithoutCertificatePlainHTTPIsServed(t *testing.T) {
	l, err := listen.Open(t.Context(), "127.0.0.1:0", listen.TLS{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, listen.Scheme("")+"://"+l.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestUnreadableCertificateAtStartIsAnError(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := certificate(t, dir, 1, time.Now())
	other, _, _ := certificate(t, t.TempDir(), 2, time.Now())
	for name, files := range map[string][2]string{"missing": {cert, filepath.Join(dir, "none")}, "of another key": {other, key}} {
		l, err := listen.Open(context.Background(), "127.0.0.1:0", listen.TLS{Cert: files[0], Key: files[1]}, slog.New(slog.DiscardHandler))
		if err == nil {
			_ = l.Close()
			t.Errorf("%s: it listens", name)
		} else if !strings.Contains(err.Error(), "certificate for TLS") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCertificateWithoutKeyOrKeyWithoutCertificateIsAFault(t *testing.T) {
	if f := listen.Validate("tls.crt", ""); len(f) != 1 || f[0].Path != "key_file" {
		t.Errorf("%v", f)
	}
	if f := listen.Validate("", "tls.key"); len(f) != 1 || f[0].Path != "cert_file" {
		t.Errorf("%v", f)
	}
	if f := append(listen.Validate("", ""), listen.Validate("tls.crt", "tls.key")...); len(f) != 0 {
		t.Errorf("%v", f)
	}
}
