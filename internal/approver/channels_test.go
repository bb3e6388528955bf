package approver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/approver/slack/slacktest"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// withSlack configures an approver with Slack.
func withSlack(c *settings.Approver, url string) {
	_, hash := authn.Generate()
	c.Keys = []authn.Key{{Name: "ada", Groups: []string{"ops"}, Hash: hash}}
	c.Slack.BotToken, c.Slack.SigningSecret, c.Slack.TeamID, c.Slack.AppID = slacktest.BotToken, slacktest.SigningSecret, slacktest.Team, slacktest.App
	c.Slack.DefaultChannel, c.Slack.APIURL = "C0", url
}

func TestSlackRequiresKeysOrSignIn(t *testing.T) {
	c := settings.ApproverDefaults()
	withSlack(&c, "http://127.0.0.1:1/")
	if f := c.Validate(); len(f) > 0 {
		t.Fatal(f)
	}
	c.Keys = nil
	if f := c.Validate(); len(f) != 1 || f[0].Path != "slack" {
		t.Errorf("%v", f)
	}
	if _, err := start(t, func(o *approver.Options) { withSlack(&o.Config, "http://127.0.0.1:1/"); o.Config.Slack.TeamID = "acme" }); err == nil || !strings.Contains(err.Error(), "team_id") {
		t.Errorf("a faulty section: %v", err)
	}
}

func TestTheSlackEndpointIsServedWithThePages(t *testing.T) {
	s, srv := slacktest.Start(t), bustest.Start(t)
	for _, there := range []bool{true, false} {
		a, err := start(t, func(o *approver.Options) {
			withSlack(&o.Config, s.URL)
			if !there {
				o.Config.Slack.SigningSecret, o.Config.Slack.AppToken = "", slacktest.AppToken
			}
			o.Conn = srv.Connect(t, "approver")
			o.Ledger, o.Desk = partsOn(t, srv)
		})
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Transport: &http.Transport{}}
		resp, err := c.Do(slacktest.Request(t, "http://"+a.Addr()+"/slack/commands", slacktest.Command("U1", "help")))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[there]; resp.StatusCode != want {
			t.Errorf("endpoint %t: %d", there, resp.StatusCode)
		}
		if status, _ := get(t, c, "http://"+a.Addr()+"/slack"); status != http.StatusOK { // the sign-in page to which it redirects
			t.Errorf("the page: %d", status)
		}
		c.CloseIdleConnections()
		stop(t, a)
	}
}
