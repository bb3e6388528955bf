package deploy_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Metrics that appear only after events that this test does not cause. Package
// metrics must know them.
var rare = []string{"callyard_session_restarts_total", "callyard_protocol_noise_total", "callyard_webhooks_total", "callyard_sandboxes", "callyard_sandboxes_killed_total", "callyard_sandbox_egress_total", "callyard_accepted_losses", "callyard_changed_tools"}

var (
	metricName = regexp.MustCompile(`\b(?:callyard|process|go)_[a-z0-9_]+\b`)
	outcomes   = regexp.MustCompile(`outcome[=!]~?"([^"]*)"`)
	shown      = regexp.MustCompile(`(?m)^# TYPE (\S+) `)
)

// expressions returns all queries of the dashboard and the alerts.
func expressions(t testing.TB) map[string]string {
	t.Helper()
	found := make(map[string]string)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/callyard.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			found["panel "+p.Title+": "+target.Expr] = target.Expr
		}
	}
	for _, v := range board.Templating.List {
		if v.Name == "server" {
			found["variable "+v.Name] = v.Query
		}
	}
	runbook := read(t, "../docs/reference/alerts.md")
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	parseYAML(t, "prometheus/alerts.yaml", &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			found["alert "+r.Alert] = r.Expr
			if !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
				t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
			}
			page, section, _ := strings.Cut(r.Annotations["runbook_url"], "#")
			if page != "https://github.com/callyard/callyard/blob/main/docs/reference/alerts.md" || !strings.EqualFold(section, r.Alert) || !strings.Contains(runbook, "\n## "+r.Alert+"\n") {
				t.Errorf("%s: no section of docs/reference/alerts.md is at %q", r.Alert, r.Annotations["runbook_url"])
			}
			if r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("an alert has a name, an expression, a severity, a summary and a description: %+v", r)
			}
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d expressions were found", len(found))
	}
	return found
}

func names(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range shown.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

func TestDashboardAndAlertsUseExistingMetrics(t *testing.T) {
	f := openFabric(t, natsFile(t, "nats-server.conf"), "nats", nil)
	f.works(t)
	var door string
	eventually(t, "the states that are looked at each second", func() error {
		if _, door = ask(t, "GET", f.door+"/metrics", "", agentKey); !strings.Contains(door, "callyard_waiting_calls{") {
			return errors.New("no server has waiting calls")
		}
		return nil
	})
	_, worker := ask(t, "GET", f.probes+"/metrics", "")
	_, approver := ask(t, "GET", f.metrics+"/metrics", "")
	for role, page := range map[string]string{"frontdoor": door, "worker": worker, "approver": approver} {
		if !strings.Contains(page, `callyard_nats_connected{role="`+role+`"} 1`) || !strings.Contains(page, "callyard_build_info{") {
			t.Errorf("the metrics of the %s do not tell its build and its connection to NATS:\n%.600s", role, page)
		}
	}
	if !strings.Contains(door, `callyard_calls_deferred_total{server="demo",state="held"}`) || strings.Contains(door, `outcome="held"`) {
		t.Error("a held call counts as one that ended")
	}
	there := names(door)
	maps.Copy(there, names(worker))
	for _, name := range rare {
		if there[name] {
			t.Errorf("%s shows itself in every fabric: take it off the list of rare ones", name)
		}
	}

	m := telemetry.NewMetrics()
	m.SessionRestarted("s")
	m.ProtocolNoise("s", 1)
	m.Webhook("delivered")
	m.SandboxKilled("s", "lost")
	m.SandboxEgress("s", false)
	m.SetSandboxes("s", 1, 1)
	m.SpansDropped("full", 1)
	m.Unexpected("origin")
	m.AcceptedLosses(1)
	m.SetChangedTools("s", 1)
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	known := names(answer.Body.String())
	for _, name := range rare {
		if !known[name] {
			t.Errorf("%s is no metric of Callyard", name)
		}
		there[name] = true
	}

	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for where, expr := range expressions(t) {
		if !metricName.MatchString(expr) && !strings.HasPrefix(expr, "up{") && !strings.HasPrefix(expr, "absent(up{") {
			t.Errorf("%s: there is no metric in it", where)
		}
		for _, name := range metricName.FindAllString(expr, -1) {
			if !there[name] && !there[histogram.ReplaceAllString(name, "")] {
				t.Errorf("%s: no metric is named %s", where, name)
			}
		}
	}
}

func TestDashboardAndAlertsUseExistingOutcomes(t *testing.T) {
	kinds := []schema.Kind{
		schema.KindInvalidRequest, schema.KindForbidden, schema.KindDisabled, schema.KindNotFound, schema.KindConflict, schema.KindExpired, schema.KindTooLarge,
		schema.KindInvalidArguments, schema.KindQuota, schema.KindUnavailable, schema.KindServerFailed, schema.KindProtocol, schema.KindResultTooLarge,
		schema.KindInputRequired, schema.KindOutcomeUnknown, schema.KindCanceled, schema.KindInternal,
	}
	for where, expr := range expressions(t) {
		for _, m := range outcomes.FindAllStringSubmatch(expr, -1) {
			for outcome := range strings.SplitSeq(m[1], "|") {
				if outcome != "ok" && outcome != "tool-error" && !slices.Contains(kinds, schema.Kind(outcome)) {
					t.Errorf("%s: no call ends as %q", where, outcome)
				}
			}
		}
	}
}
