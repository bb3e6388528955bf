package frontdoor_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/listen/listentest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestAFrontDoorWithACertificateServesTLS(t *testing.T) {
	cert, key, client := listentest.Certificate(t)
	d, err := open(t, bustest.Start(t), func(c *settings.FrontDoor) { c.CertFile, c.KeyFile = cert, key })
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, d)
	if d.URL() != "https://"+d.Addr() {
		t.Errorf("it says that it is at %s", d.URL())
	}
	if status := listentest.Get(t, client, d.URL()+"/livez").StatusCode; status != http.StatusOK {
		t.Errorf("over TLS: %d", status)
	}
	if status := listentest.Get(t, client, "http://"+d.Addr()+"/livez").StatusCode; status != http.StatusBadRequest {
		t.Errorf("in the clear: %d", status)
	}
}

func TestAFrontDoorWhoseCertificateCannotBeReadDoesNotOpen(t *testing.T) {
	cert, _, _ := listentest.Certificate(t)
	d, err := open(t, bustest.Start(t), func(c *settings.FrontDoor) { c.CertFile, c.KeyFile = cert, cert })
	if err == nil {
		stop(t, d)
		t.Fatal("it opened")
	}
	if !strings.Contains(err.Error(), cert) || strings.Contains(err.Error(), "--listen") {
		t.Errorf("the error is %v", err)
	}
}
