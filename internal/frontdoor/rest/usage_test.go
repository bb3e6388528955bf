package rest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/usage"
	"github.com/callyard/callyard/pkg/schema"
)

// usageOf returns the answer to GET /usage.
func (f *fabric) usageOf(query string, header ...string) usage.UsageReport {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		a := f.do("GET", "/usage"+query, "", header...)
		var u usage.UsageReport
		if err := json.Unmarshal(a.body, &u); err != nil || a.status != http.StatusOK || !u.Complete && time.Now().After(end) {
			f.t.Fatalf("%d %s", a.status, a.body)
		}
		if u.Complete { // a front door may answer before it has counted everything
			return u
		}
	}
}

// recordsOf returns the records of GET /calls.
func (f *fabric) recordsOf(header ...string) (all []calls.View) {
	f.t.Helper()
	for cursor := ""; ; {
		a := f.do("GET", "/calls?limit=500&cursor="+url.QueryEscape(cursor), "", header...)
		var page calls.Page
		if err := json.Unmarshal(a.body, &page); err != nil || a.status != http.StatusOK {
			f.t.Fatalf("%d %s", a.status, a.body)
		}
		if all = append(all, page.Calls...); page.Next == "" {
			return all
		}
		cursor = page.Next
	}
}

// sumOf returns the sums of the records, as GET /usage counts.
func sumOf(all []calls.View) (c usage.UsageCounts) {
	for i := range all {
		v := &all[i]
		c.Calls++
		c.TookMs += v.TookMs
		c.BytesIn += v.ArgumentBytes
		c.BytesOut += v.ResultBytes
		for state, n := range map[schema.State]*int64{
			schema.StateSucceeded: &c.Succeeded, schema.StateFailed: &c.Failed, schema.StateDenied: &c.Denied, schema.StateExpired: &c.Expired, schema.StateCanceled: &c.Canceled, schema.StateUnknown: &c.Unknown,
			schema.StateHeld: &c.Unfinished, schema.StateQueued: &c.Unfinished, schema.StateRunning: &c.Unfinished,
		} {
			if v.State == state {
				*n++
			}
		}
		if v.ToolError {
			c.ToolErrors++
		}
		if v.ApprovalID != "" {
			c.Held++
		}
	}
	return c
}

func about(a, b usage.UsageCounts) string {
	a.TookMs, b.TookMs = float64(int64(a.TookMs*1000+.5)), float64(int64(b.TookMs*1000+.5)) // µs
	return cmp.Diff(a, b)
}

// metric returns the sum of the time series of /metrics with this prefix.
func (f *fabric) metric(begin string, header ...string) (sum float64) {
	f.t.Helper()
	for line := range strings.Lines(string(f.do("GET", "/metrics", "", header...).body)) {
		if strings.HasPrefix(line, begin) {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:]), 64)
			if err != nil {
				f.t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// openTenants opens the API for a caller of the default tenant, and two of other tenants. The last
// one may only call.
func openTenants(t *testing.T) (f *fabric, as map[string][]string) {
	t.Helper()
	as = map[string][]string{}
	var list []authn.Key
	for _, key := range []authn.Key{{Name: "home"}, {Name: "ann", Tenant: "red"}, {Name: "bob", Tenant: "blue"}} {
		secret, hash := authn.Generate()
		key.Hash = hash
		list = append(list, key)
		as[key.Name] = []string{"Authorization", "Bearer " + secret, "Content-Type", "application/json"}
	}
	keys, err := authn.NewKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return openFabric(t, func(o *Options) { o.Keys = callers.New(callers.Options{Keys: keys}) }), as
}

// TestUsageRecordsAndMetricsAgreeUnderLoad lets callers of three tenants call concurrently. Some of
// the calls are refused.
func TestUsageRecordsAndMetricsAgreeUnderLoad(t *testing.T) {
	f, as := openTenants(t)
	const each = 150
	var wg sync.WaitGroup
	for _, header := range as {
		for worker := range 4 {
			wg.Go(func() {
				for i := worker; i < each; i += 4 {
					path := "/servers/demo/tools/" + []string{"echo", "echo", "fail", "late-error", "no-such-tool"}[i%5]
					f.do("POST", path, fmt.Sprintf(`{"message":%q}`, strings.Repeat("x", i)), header...)
				}
			})
		}
	}
	wg.Wait()
	var all []calls.View
	for name, header := range as {
		own := f.recordsOf(header...)
		if len(own) != each {
			t.Fatalf("%s has %d records", name, len(own))
		}
		all = append(all, own...)
		if name == "home" {
			continue
		}
		report := f.usageOf("?by=key", header...)
		if diff := about(sumOf(own), report.Total); diff != "" || len(report.Rows) != 1 || report.Rows[0].Key != name || report.Rows[0].Tenant != own[0].Tenant {
			t.Errorf("%s: %+v (-records +usage)\n%s", name, report.Rows, diff)
		}
	}
	report := f.usageOf("?by=tenant,server,tool&interval=hour", as["home"]...)
	if diff := about(sumOf(all), report.Total); diff != "" {
		t.Errorf("(-records +usage)\n%s", diff)
	}
	rows := usage.UsageCounts{}
	for _, row := range report.Rows {
		rows.Calls += row.Calls
		if row.Start == nil || row.Tenant == "" || row.Key != "" {
			t.Errorf("%+v", row)
		}
	}
	for name, want := range map[string]float64{
		`callyard_usage_calls_total{outcome="succeeded"`: float64(report.Total.Succeeded), `callyard_usage_calls_total{outcome="failed"`: float64(report.Total.Failed), `callyard_usage_calls_total{`: 3 * each,
		`callyard_usage_bytes_total{direction="in"`: float64(report.Total.BytesIn), `callyard_usage_bytes_total{direction="out"`: float64(report.Total.BytesOut), `callyard_usage_seconds_total{`: report.Total.TookMs / 1000,
	} {
		if got := f.metric(name, as["home"]...); math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %v, and GET /usage has %v", name, got, want)
		}
	}
	if rows.Calls != 3*each || report.Total.Failed == 0 || report.Total.Succeeded == 0 {
		t.Errorf("%+v", report.Total)
	}
}

func TestUsageShowsCallersOnlyTheirOwn(t *testing.T) {
	f, as := openTenants(t)
	for _, header := range as {
		if a := f.do("POST", "/servers/demo/tools/echo", `{"message":"x"}`, header...); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for _, c := range []struct {
		who, query string
		keys       string
	}{
		{"home", "?by=key", "bob home ann"}, {"home", "?by=key&tenant=red", "ann"}, {"home", "?by=key&tenant=default", "home"},
		{"home", "?by=key&tenant=nobody", ""},
		{"ann", "?by=key", "ann"}, {"ann", "?by=key&tenant=red", "ann"}, {"ann", "?by=key&tenant=blue", ""}, {"ann", "?by=key&tenant=default", ""},
		{"ann", "?by=key&from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z", ""},
	} {
		var keys []string
		for _, row := range f.usageOf(c.query, as[c.who]...).Rows {
			keys = append(keys, row.Key)
		}
		want := strings.Fields(c.keys)
		if got := strings.Join(keys, " "); len(keys) != len(want) || len(want) == 1 && got != c.keys {
			t.Errorf("%s %s: %s", c.who, c.query, got)
		}
	}
	for _, bad := range []string{"?by=colour", "?interval=week", "?from=yesterday", "?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "?limit=3"} {
		if a := f.do("GET", "/usage"+bad, "", as["home"]...); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}
