package frontdoor_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// certificateAuthority is a certificate authority.
type certificateAuthority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) *certificateAuthority {
	t.Helper()
	a := &certificateAuthority{t: t}
	a.key = newECKey(t)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return a
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue issues a certificate with these URIs and DNS names that expires after lasts.
func (a *certificateAuthority) issue(lasts time.Duration, names ...string) *tls.Certificate {
	a.t.Helper()
	key := newECKey(a.t)
	of := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "spiffe://example.org/agents/billing"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lasts),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if u, err := url.Parse(name); err == nil && u.Scheme != "" {
			of.URIs = append(of.URIs, u)
		} else {
			of.DNSNames = append(of.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// files writes a certificate and its key.
func (a *certificateAuthority) files(c *tls.Certificate) (cert, key string) {
	a.t.Helper()
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	raw, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key
}

func TestClientCertificateAuthenticatesAsItsKey(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	ca, other, is := newAuthority(t), newAuthority(t), tokentest.Start(t)
	cas := filepath.Join(t.TempDir(), "cas.pem")
	if err := os.WriteFile(cas, ca.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	const agent, robot = "spiffe://example.org/agents/billing", "robot.example.org"
	c := settings.FrontDoor{ClientCAFile: cas, PublicURL: publicURL, Issuers: []settings.Issuer{is.Entry("idp")}, Keys: []authn.Key{
		{Name: "billing", Certificate: agent, Role: scope.Caller}, {Name: "robot", Certificate: "Robot.example.org"}, {Name: "past", Certificate: "past.example.org", Expires: time.Now().Add(-time.Hour)},
	}}
	c.CertFile, c.KeyFile = ca.files(ca.issue(time.Hour, "127.0.0.1"))
	d := openDoor(t, srv, frontdoor.Options{Config: c})
	address := "https://" + strings.TrimPrefix(d.base, "http://")
	ask := func(shown *tls.Certificate, path string, header http.Header) (status int, body string, err error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, // the server certificate is not tested
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if shown == nil {
					return new(tls.Certificate), nil
				}
				return shown, nil
			},
		}}}
		defer client.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		resp, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		text := new(strings.Builder)
		if err := resp.Write(text); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, text.String(), nil
	}
	key := http.Header{"Authorization": {"Bearer " + d.key}}
	good := ca.issue(time.Hour, agent)
	sum := sha256.Sum256(good.Certificate[0])
	bound := http.Header{"Authorization": {"Bearer " + is.Key().Sign(t, is.Claims("ann", publicURL, tokentest.Claims{"scope": "tools:read", "cnf": map[string]any{"x5t#S256": base64.RawURLEncoding.EncodeToString(sum[:])}}), nil)}}
	for _, c := range []struct {
		what   string
		shown  *tls.Certificate
		path   string
		header http.Header
		status int // 0 means that the connection is refused
		says   string
	}{
		{"its URI", good, "/tools", nil, 200, `"read"`},
		{"the role of its key", good, "/workers", nil, 403, "tools:read"},
		{"its DNS name, in any case", ca.issue(time.Hour, robot), "/workers", nil, 200, ""},
		{"no certificate and no key", nil, "/tools", nil, 401, "Send your API key"},
		{"no certificate, and a key", nil, "/workers", key, 200, ""},
		{"both: the key counts", good, "/workers", key, 200, ""},
		{"both: a wrong key counts", good, "/tools", http.Header{"Authorization": {"Bearer wrong"}}, 401, "unknown"},
		{"another name", ca.issue(time.Hour, "spiffe://example.org/agents/billing2"), "/tools", nil, 401, "No key stands for your client certificate"},
		{"the name as common name only", ca.issue(time.Hour), "/tools", nil, 401, "No key stands"},
		{"names of two keys", ca.issue(time.Hour, agent, robot), "/tools", nil, 401, "several keys"},
		{"a key that has expired", ca.issue(time.Hour, "past.example.org"), "/tools", nil, 401, "expired"},
		{"a certificate that has expired", ca.issue(-time.Minute, agent), "/tools", nil, 0, ""},
		{"another authority", other.issue(time.Hour, agent), "/tools", nil, 0, ""},
		{"a bound token with its certificate", good, "/tools", bound, 200, ""},
		{"a bound token with another certificate", ca.issue(time.Hour, agent), "/tools", bound, 401, "bound to a client certificate"},
		{"a bound token without a certificate", nil, "/tools", bound, 401, "bound to a client certificate"},
	} {
		status, body, err := ask(c.shown, c.path, c.header)
		if status != c.status || (err != nil) != (c.status == 0) || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d, want %d with %q: %v %s", c.what, status, c.status, c.says, err, body)
		}
	}

	// A new file of authorities applies to the next connection.
	if err := os.WriteFile(cas, other.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(cas, time.Now(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if status, body, err := ask(good, "/tools", nil); err == nil {
		t.Errorf("a removed authority: %d %s", status, body)
	}
	if status, body, err := ask(other.issue(time.Hour, agent), "/tools", nil); status != 200 {
		t.Errorf("the new authority: %d %v %s", status, err, body)
	}
}
