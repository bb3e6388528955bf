package approver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/listen/listentest"
	"github.com/callyard/callyard/internal/settings"
)

func TestApproverServesTLSWithSecureCookies(t *testing.T) {
	cert, key, client := listentest.Certificate(t)
	_, hash := authn.Generate()
	a, err := start(t, func(o *approver.Options) {
		o.Config.CertFile, o.Config.KeyFile = cert, key
		o.Config.Keys = []authn.Key{{Name: "ann", Groups: []string{"ops"}, Hash: hash}}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, a)
	if want := "https://" + a.Addr(); a.Base() != want || a.URL("") != want+"/" {
		t.Errorf("it says that it is at %s, and its list at %s", a.Base(), a.URL(""))
	}
	if status := listentest.Get(t, client, "http://"+a.Addr()+"/livez").StatusCode; status != http.StatusBadRequest {
		t.Errorf("in the clear: %d", status)
	}
	cookies := listentest.Get(t, client, a.URL("")).Header.Values("Set-Cookie")
	if len(cookies) == 0 {
		t.Error("no cookie is set")
	}
	for _, c := range cookies {
		if !strings.Contains(c, "Secure") {
			t.Errorf("the cookie %s is not for TLS only", c)
		}
	}
}

func TestTLSRequiresAnHTTPSPublicURL(t *testing.T) {
	c := settings.ApproverDefaults()
	c.CertFile, c.KeyFile, c.PublicURL = "tls.crt", "tls.key", "http://localhost"
	if faults := c.Validate(); len(faults) != 1 || faults[0].Path != "public_url" {
		t.Errorf("%v", faults)
	}
	c.PublicURL = "https://localhost"
	if faults := c.Validate(); len(faults) != 0 {
		t.Errorf("%v", faults)
	}
}
