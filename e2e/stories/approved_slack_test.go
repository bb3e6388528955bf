package stories

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/e2e/browser"
	"github.com/callyard/callyard/e2e/fabric"
	"github.com/callyard/callyard/internal/approver/slack/slacktest"
)

const (
	slackName    = "slack.test"
	slackChannel = "C0APPROVALS"
)

// front makes the fake Slack of the test, which listens on loopback, available to containers over
// TLS and under a host name. It returns the address and the file of the CA to trust.
func front(t *testing.T, to string) (address, ca string) {
	t.Helper()
	target, err := url.Parse(to)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	like := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: slackName}, DNSNames: []string{slackName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, like, like, &key.PublicKey, key)
	must(t, err)
	l, err := net.Listen("tcp", ":0") // the engine's bridge must reach it
	must(t, err)
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport}
	s := httptest.NewUnstartedServer(proxy)
	_ = s.Listener.Close()
	s.Listener, s.TLS = l, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		transport.CloseIdleConnections()
	})
	ca = filepath.Join(all.effects, "slack-ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return "https://" + slackName + ":" + port, ca
}

// postAsSlack sends a request like Slack to the approver, and returns the response.
func postAsSlack(t *testing.T, to string, body []byte) string {
	t.Helper()
	resp, err := httpClient(t).Do(slacktest.Request(t, to, body))
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %d %s, %v", to, resp.StatusCode, text, err)
	}
	return string(text)
}

func TestAHeldCallIsApprovedInSlack(t *testing.T) {
	f := sharedFabric(t)
	c, l := caller(t, f, f.URL()), newLedger(t)
	l.open(t)
	slack := slacktest.Start(t)
	address, ca := front(t, strings.TrimSuffix(slack.URL, "/api/"))
	set := func(name, value string) (string, string) { return "CALLYARD_APPROVER_SLACK_" + name, value }
	env := map[string]string{"SSL_CERT_FILE": "/run/slack-ca.pem"}
	for _, s := range [][2]string{
		{"BOT_TOKEN", slacktest.BotToken}, {"SIGNING_SECRET", slacktest.SigningSecret}, {"TEAM_ID", slacktest.Team}, {"APP_ID", slacktest.App},
		{"CHANNELS", `{"ops":"` + slackChannel + `"}`}, {"API_URL", address + "/api/"},
	} {
		name, value := set(s[0], s[1])
		env[name] = value
	}
	desk, err := f.AddApprover(t.Context(), fabric.Part{Env: env, Mounts: []string{ca + ":/run/slack-ca.pem:ro"}, Hosts: []string{slackName + ":host-gateway"}})
	must(t, err)
	defer func() { must(t, desk.Stop(t.Context(), time.Minute)) }()

	h := held(t, c, "office", "effect", l.arguments("in slack"))
	card := func(says string) (found slacktest.Message) {
		t.Helper()
		eventually(t, "a card that says "+says, func() error {
			for _, m := range slack.Messages(slackChannel) {
				if strings.Contains(m.Blocks, string(h.ApprovalID)) && strings.Contains(m.Blocks, says) {
					found = m
					return nil
				}
			}
			return fmt.Errorf("there are %d cards", len(slack.Messages(slackChannel)))
		})
		return found
	}
	m := card("Approval required")

	// The approver connects the Slack account with the one here: a code from the page,
	// typed in Slack, and a confirmation on the page.
	p := browser.Open(browser.Start(t), t, true)
	p.Go(desk.URL() + "/sign-in?next=/slack")
	p.Do(chromedp.SendKeys(chromedp.CSS("#key"), f.PersonKey+kb.Enter))
	p.Sees("the page of Slack", `document.querySelector('form[action="/slack/code"]') !== null`)
	p.Do(chromedp.Click(chromedp.CSS(`form[action="/slack/code"] button`)))
	p.Sees("the code", `[...document.querySelectorAll("code")].some((c) => c.textContent.includes("connect "))`)
	command := browser.Ask[string](p, `[...document.querySelectorAll("code")].find((c) => c.textContent.includes("connect ")).textContent`)
	_, code, _ := strings.Cut(command, "/callyard ")
	if answer := postAsSlack(t, desk.URL()+"/slack/commands", slacktest.Command("U0ANN", code)); !strings.Contains(answer, "confirm") {
		t.Fatalf("the command is answered with %s", answer)
	}
	eventually(t, "the page asking for the yes", func() error {
		p.Go(desk.URL() + "/slack")
		if p.Count(`form[action="/slack/connect"] button`) == 0 {
			return fmt.Errorf("it says %s", p.Text())
		}
		return nil
	})
	p.Do(chromedp.Click(chromedp.CSS(`form[action="/slack/connect"] button`)))
	p.Sees("the word that it is connected", `(document.querySelector(".notice.success")?.textContent ?? "").includes("is connected")`)

	value, _, ok := m.Button("approve", 0)
	if !ok {
		t.Fatalf("the card has no button: %s", m.Blocks)
	}
	postAsSlack(t, desk.URL()+"/slack/interactions", slacktest.Form(slacktest.Click("U0ANN", m, "approve", value, "")))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("people were told: %+v", slack.Ephemerals())
		}
	})
	end := ended(t, c, string(h.CallID))
	if end.State != callyard.CallStateSucceeded {
		t.Errorf("the call ends as %+v", end)
	}
	if got := l.count(t, "in slack"); got != 1 {
		t.Errorf("it ran %d times", got)
	}
	if _, _, still := card("in Slack").Button("approve", 0); still {
		t.Error("the card of a decided call has its button still")
	}
}
