package tlsfiles

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyTheCertificatesOfTheFileAreTrusted(t *testing.T) {
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

func TestAFileThatIsOfNoUseIsNamed(t *testing.T) {
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
