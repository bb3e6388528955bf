package checks

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// scrapeEvery is the interval of deploy/prometheus/prometheus.yaml.
const scrapeEvery = 15 * time.Second

// recording is a Prometheus that has scraped a fleet for a while. The counts of the fleet
// come from Callyard's own metrics.
type recording struct {
	t       testing.TB
	storage *teststorage.TestStorage
	engine  *promql.Engine
	now     time.Time
	fleet   []*instance
}

// instance is one scraped process.
type instance struct {
	*telemetry.Metrics
	job, name string
	down      bool
	inForce   []schema.InForce
}

func record(t testing.TB) *recording {
	t.Helper()
	r := &recording{t: t, storage: teststorage.New(t), engine: promqltest.NewTestEngine(t, false, 0, 1_000_000), now: time.Unix(1_800_000_000, 0)}
	t.Cleanup(func() { _ = r.storage.Close() })
	return r
}

func (r *recording) add(job, name string) *instance {
	i := &instance{Metrics: telemetry.NewMetrics(), job: job, name: name}
	r.fleet = append(r.fleet, i)
	return i
}

// run scrapes the fleet for that duration and calls each before each scrape.
func (r *recording) run(d time.Duration, each func()) {
	r.t.Helper()
	for end := r.now.Add(d); r.now.Before(end); r.now = r.now.Add(scrapeEvery) {
		each()
		for _, i := range r.fleet {
			r.scrape(i)
		}
	}
}

func (r *recording) scrape(i *instance) {
	r.t.Helper()
	app := r.storage.Appender(context.Background())
	put := func(l labels.Labels, value float64) {
		b := labels.NewBuilder(l).Set("job", i.job).Set("instance", i.name).Set("namespace", "tools")
		if _, err := app.Append(0, b.Labels(), r.now.UnixMilli(), value); err != nil {
			r.t.Fatal(err)
		}
	}
	if i.down {
		put(labels.FromStrings("__name__", "up"), 0)
	} else {
		put(labels.FromStrings("__name__", "up"), 1)
		w := httptest.NewRecorder()
		i.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		p := textparse.NewPromParser(w.Body.Bytes(), labels.NewSymbolTable(), false)
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				r.t.Fatal(err)
			}
			if entry == textparse.EntrySeries {
				var l labels.Labels
				_, _, value := p.Series()
				p.Labels(&l)
				put(l, value)
			}
		}
	}
	if err := app.Commit(); err != nil {
		r.t.Fatal(err)
	}
}

// ask evaluates a query at the last scrape.
func (r *recording) ask(query string) promql.Vector {
	r.t.Helper()
	query = strings.NewReplacer("$__rate_interval", "5m", "$server", ".*").Replace(query)
	q, err := r.engine.NewInstantQuery(context.Background(), r.storage, nil, query, r.now.Add(-scrapeEvery))
	if err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	for _, w := range q.Exec(context.Background()).Warnings {
		r.t.Errorf("%s: %v", query, w)
	}
	return append(promql.Vector(nil), v...)
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parseYAML(t testing.TB, path string, v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, path)), v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
