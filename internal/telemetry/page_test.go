package telemetry

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the table of docs/reference/metrics.md")

const metricsPage = "../../docs/reference/metrics.md"

var (
	described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(?:[^"\\]|\\.)*", unit: "[^"]*", constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)
	constName = regexp.MustCompile(`(\w+)="`)
	named     = regexp.MustCompile(`"(callyard_[a-z_]+)"`)
)

// registered returns Callyard's metrics with their labels, from the registry.
func registered(t *testing.T) map[string]string {
	t.Helper()
	m := NewMetrics()
	m.JournalWrites("frontdoor", func() int { return 0 })
	m.NATS("frontdoor", func() bool { return true })
	Redis(m, func() bool { return true })
	m.AcceptedLosses(0)
	m.Episodes()
	m.Configuration(func() []schema.InForce { return nil })
	all := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(all)
	close(all)
	found := map[string]string{}
	for d := range all {
		p := described.FindStringSubmatch(d.String())
		if p == nil {
			t.Fatalf("cannot read %s", d)
		}
		if !strings.HasPrefix(p[1], "callyard_") {
			continue // a metric of the Go runtime or the process
		}
		var labels []string
		for _, c := range constName.FindAllStringSubmatch(p[2], -1) {
			labels = append(labels, "`"+c[1]+"`")
		}
		for v := range strings.SplitSeq(p[3], ",") {
			if v != "" {
				labels = append(labels, "`"+v+"`")
			}
		}
		found[p[1]] = strings.Join(labels, ", ")
	}
	return found
}

// The table of the page is generated: names and labels come from the registry, meanings from the
// existing rows.
func TestThePageOfMetricsListsEveryMetric(t *testing.T) {
	all := registered(t)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if _, ok := all[m[1]]; !ok {
				t.Errorf("%s names %s, which registered does not register", name, m[1])
			}
		}
	}
	raw, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), "<!-- metrics -->\n")
	if !found {
		t.Fatalf("%s has no line <!-- metrics -->", metricsPage)
	}
	meanings := map[string]string{}
	for strings.HasPrefix(rest, "|") {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		cells := strings.SplitN(strings.Trim(line, "| "), " | ", 3)
		if name := strings.Trim(cells[0], "`"); len(cells) == 3 && strings.HasPrefix(name, "callyard_") {
			meanings[name] = cells[2]
		}
	}
	var b strings.Builder
	b.WriteString("| metric | labels | meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if meanings[name] == "" {
			t.Errorf("%s has no meaning in %s: write it into the last cell; -update makes the row", name, metricsPage)
		}
		labels := all[name]
		if labels == "" {
			labels = "–"
		}
		b.WriteString("| `" + name + "` | " + labels + " | " + meanings[name] + " |\n")
		delete(meanings, name)
	}
	for name := range meanings {
		t.Errorf("%s has a row for %s, which is no metric", metricsPage, name)
	}
	want := before + "<!-- metrics -->\n" + b.String() + rest
	if *update {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(raw), want); diff != "" {
		t.Errorf("the table is not that of the code: go test ./internal/telemetry -update (-page +code):\n%s", diff)
	}
}
