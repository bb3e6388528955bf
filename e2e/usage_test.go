package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// usageCounts are the counts that a test compares, by their names in GET /usage.
type usageCounts map[string]float64

// usageRow is a row of GET /usage.
type usageRow struct {
	Key string `json:"key"`
	usageCounts
}

func (r *usageRow) UnmarshalJSON(text []byte) error {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	r.Key, _ = all["key"].(string)
	r.usageCounts = usageCounts{}
	for name, value := range all {
		if n, ok := value.(float64); ok && n != 0 {
			r.usageCounts[name] = n
		}
	}
	return nil
}

// usageByKey returns GET /usage?by=key.
func (d *door) usageByKey(key string) (map[string]usageCounts, error) {
	var report struct {
		Complete bool       `json:"complete"`
		Rows     []usageRow `json:"rows"`
	}
	a, err := d.try("GET", "/usage?by=key", "", "X-API-Key: "+key)
	if err != nil || a.status != 200 || json.Unmarshal(a.body, &report) != nil || !report.Complete {
		return nil, fmt.Errorf("%d %s %w", a.status, a.body, err)
	}
	rows := map[string]usageCounts{}
	for _, row := range report.Rows {
		rows[row.Key] = row.usageCounts
	}
	return rows, nil
}

// recorded adds up the records of the key's calls, as GET /usage does.
func (d *door) recorded(key string) (usageCounts, error) {
	sum := usageCounts{}
	for cursor := ""; ; {
		var page struct {
			Calls []struct {
				State    string  `json:"state"`
				Approval string  `json:"approval_id"`
				In       float64 `json:"arguments_bytes"`
				Out      float64 `json:"result_bytes"`
				Took     float64 `json:"took_ms"`
				Error    bool    `json:"tool_error"`
			} `json:"calls"`
			Next string `json:"next"`
		}
		a, err := d.try("GET", "/calls?limit=1000&cursor="+url.QueryEscape(cursor), "", "X-API-Key: "+key)
		if err != nil || a.status != 200 || json.Unmarshal(a.body, &page) != nil {
			return nil, fmt.Errorf("%d %s %w", a.status, a.body, err)
		}
		add := func(name string, n float64) {
			if n != 0 {
				sum[name] += n
			}
		}
		for _, c := range page.Calls {
			name := c.State
			if name == "held" || name == "queued" || name == "running" {
				name = "unfinished"
			}
			add("calls", 1)
			add(name, 1)
			add("bytes_in", c.In)
			add("bytes_out", c.Out)
			add("took_ms", c.Took)
			if c.Approval != "" {
				add("held", 1)
			}
			if c.Error {
				add("tool_errors", 1)
			}
		}
		if cursor = page.Next; cursor == "" {
			return sum, nil
		}
	}
}

// sameUsage compares to the microsecond: sums of fractions depend on their order.
func sameUsage(a, b usageCounts) bool {
	return len(a) == len(b) && !slices.ContainsFunc(keys(a), func(name string) bool { return math.Abs(a[name]-b[name]) > 1e-4 })
}

// usageFleet is two front doors and a worker at a NATS server.
type usageFleet struct {
	nats   *natsProcess
	doors  [2]atomic.Pointer[door]
	worker *workerProcess

	natsDir       string
	door, workers setup
}

func openUsageFleet(t *testing.T) *usageFleet {
	t.Helper()
	f := &usageFleet{natsDir: t.TempDir()}
	f.nats = startNATS(t, f.natsDir)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, "rules:\n  - {name: no, match: {tool: big}, deny: no}\n  - {name: ask, match: {tool: add}, level: 2, approval: {by: caller}}\n")
	f.door = setup{nats: f.nats.url, config: configOf("one", "two", "ops"), flags: []string{"--policy", policy}}
	f.workers = setup{nats: f.nats.url, flags: []string{"--policy", policy}, servers: serversFile(t, map[string]entry{"demo": {Command: filepath.Join(bin(t), "callyard"), Args: []string{"demo-server"}, RiskLevel: 1}})}
	f.worker = startWorker(t, f.workers)
	for i := range f.doors {
		f.doors[i].Store(startFrontDoor(t, f.door))
	}
	for i := range f.doors {
		d := f.doors[i].Load()
		eventually(t, startWithin, "the server", func() error {
			if a, err := d.try("POST", toolPath("demo", "echo"), `{"message":"x"}`, "X-API-Key: ops"); err != nil || a.status != 200 {
				return fmt.Errorf("%d %w", a.status, err)
			}
			return nil
		})
	}
	return f
}

// TestUsageEqualsTheRecordsAfterEveryRoleWasKilled makes 400 calls with two keys, some of
// them refused, held or slow, while each process is killed and restarted.
func TestUsageEqualsTheRecordsAfterEveryRoleWasKilled(t *testing.T) {
	f := openUsageFleet(t)
	const total, callers = 400, 10
	var made atomic.Int64
	reached := map[int64]chan struct{}{80: make(chan struct{}), 160: make(chan struct{}), 240: make(chan struct{}), 320: make(chan struct{})}
	tools := []struct{ name, arguments string }{
		{"echo", `{"message":"hello"}`}, {"echo", `{"message":"and a longer one"}`}, {"fail", `{}`}, {"big", `{"bytes":10}`}, {"add", `{"a":1,"b":2}`}, {"none", `{}`}, {"echo", `{"wrong":1}`}, {"sleep", `{"seconds":0.2}`},
	}
	var load sync.WaitGroup
	for caller := range callers {
		load.Go(func() {
			for i := caller; i < total; i += callers {
				tool := tools[(i+i/10)%len(tools)]
				headers := []string{"X-API-Key: " + []string{"one", "two"}[i%2], "Callyard-Timeout-Ms: 3000"}
				if i%7 == 0 {
					headers = append(headers, "Prefer: respond-async")
				}
				for _, d := range []int{i / 2 % 2, (i/2 + 1) % 2} { // one of them may be killed
					if _, err := f.doors[d].Load().try("POST", toolPath("demo", tool.name), tool.arguments, headers...); err == nil {
						break
					}
				}
				if c := reached[made.Add(1)]; c != nil {
					close(c)
				}
			}
		})
	}
	again := func(i int) {
		d := f.doors[i].Load()
		d.kill9(t)
		f.doors[i].Store(startFrontDoor(t, f.door))
	}
	<-reached[80]
	again(0)
	<-reached[160]
	f.worker.kill9(t)
	f.worker = startWorker(t, f.workers)
	<-reached[240]
	again(1)
	<-reached[320]
	f.nats.kill9(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(f.nats.url, "nats://"))
	f.nats = startNATSOn(t, f.natsDir, port)
	load.Wait()
	f.agree(t, startWithin)
	// The NATS server was started last and would be stopped first. A stopping front door would
	// wait for it.
	for i := range f.doors {
		f.doors[i].Load().stop(t)
	}
	f.worker.stop(t)
}

// agree waits until the usage of both keys at both front doors equals the records, which
// have about a hundred calls.
func (f *usageFleet) agree(t *testing.T, within time.Duration) {
	t.Helper()
	eventually(t, within, "usage that equals the records", func() error {
		for i := range f.doors {
			d := f.doors[i].Load()
			usage, err := d.usageByKey("ops")
			if err != nil {
				return err
			}
			for _, key := range []string{"one", "two"} {
				records, err := d.recorded(key)
				if err != nil {
					return err
				}
				if !sameUsage(records, usage[key]) {
					return fmt.Errorf("front door %d, key %s: the records have\n%v\nand usage\n%v", i, key, records, usage[key])
				}
				for _, some := range []string{"succeeded", "failed", "denied", "unfinished", "held", "tool_errors", "bytes_out", "took_ms"} {
					if records[some] == 0 {
						return fmt.Errorf("key %s has no %s: %v", key, some, records)
					}
				}
				if records["calls"] < 80 {
					return fmt.Errorf("key %s: %v", key, records)
				}
				own, err := d.usageByKey(key)
				if err != nil || len(own) == 0 {
					return fmt.Errorf("%v %w", own, err)
				}
			}
		}
		return nil
	})
}
