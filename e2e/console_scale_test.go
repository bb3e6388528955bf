package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The promises of docs/explanation on the console at its full size.
const (
	pageWithin  = 50 * time.Millisecond
	assetBytes  = 60 << 10
	mostOfAPage = 400 << 10 // the maximum bytes of a page, whatever the amount of data
	viewerCost  = 0.02
)

// consoleMeasured reports whether the tests of the console run at full size and check figures.
func consoleMeasured() bool { return os.Getenv("CALLYARD_CONSOLE_SCALE") == "full" }

// TestPagesOfTheConsoleWithMuchData loads every page. Unless it measures, the data is
// small and times are ignored: pages must have their content, and must be bounded.
func TestPagesOfTheConsoleWithMuchData(t *testing.T) {
	size := amounts{servers: 50, tools: 500, calls: 1000, approvals: 150}
	if consoleMeasured() {
		size = amounts{servers: 500, tools: 5000, calls: 100_000, approvals: 10_000}
	}
	began := time.Now()
	c := fillConsole(t, size)
	t.Logf("%+v in %s", size, time.Since(began).Round(time.Second))
	c.assets(t)
	for _, of := range c.addresses() {
		a := c.look(t, of)
		if len(a.body) > mostOfAPage {
			t.Errorf("%s has %d bytes", of.name, len(a.body))
		}
	}
	if consoleMeasured() {
		c.time(t)
		c.viewerTime(t)
		c.viewers(t)
	}
}

// look loads a page.
func (c *crowded) look(t testing.TB, of address) answer {
	t.Helper()
	a, err := send(c.http, c.pages, "GET", of.path, "", "Accept: text/html")
	if err != nil || a.status != http.StatusOK || !bytes.Contains(a.body, []byte("</html>")) {
		t.Fatalf("%s, %s: %v, %d %.300s", of.name, of.path, err, a.status, a.body)
	}
	return a
}

// assets adds up the compressed files that a browser loads once.
func (c *crowded) assets(t testing.TB) {
	t.Helper()
	all := map[string]bool{}
	for _, of := range c.addresses() {
		for _, found := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllSubmatch(c.look(t, of).body, -1) {
			all[string(found[1])] = true
		}
	}
	sum := 0
	for path := range all {
		a, err := send(c.http, c.pages, "GET", path, "")
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: %v, %d", path, err, a.status)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(a.body)
		_ = w.Close()
		sum += packed.Len()
	}
	t.Logf("assets: %d files, %d bytes packed", len(all), sum)
	if len(all) < 3 || sum > assetBytes {
		t.Errorf("%d assets have %d bytes", len(all), sum)
	}
}

// time loads each page many times, in a different order each time. A round takes longer than
// the second for which the front door caches a response, so that no page always uses the cache.
func (c *crowded) time(t *testing.T) {
	const rounds = 25
	pages := c.addresses()
	took := make(map[string][]time.Duration)
	bytesOf := make(map[string]int)
	for range rounds {
		next := time.After(1100 * time.Millisecond)
		rand.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] })
		for _, of := range pages {
			began := time.Now()
			a := c.look(t, of)
			took[of.name], bytesOf[of.name] = append(took[of.name], time.Since(began)), len(a.body)
		}
		<-next
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-22s %8s %8s %8s %8s\n", "page", "p50 ms", "p95 ms", "max ms", "KiB")
	for _, of := range c.addresses() {
		all := took[of.name]
		slices.Sort(all)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		p95 := all[(len(all)*95+99)/100-1]
		fmt.Fprintf(&table, "%-22s %8.1f %8.1f %8.1f %8d\n", of.name, ms(all[len(all)/2]), ms(p95), ms(all[len(all)-1]), bytesOf[of.name]>>10)
		if p95 > pageWithin {
			t.Errorf("%s: p95 is %s", of.name, p95)
		}
	}
	t.Logf("pages:\n%s", table.String())
}

// viewerTime measures the processor time of 50 open pages. If calls use all processors,
// it is the share that the pages take from them.
func (c *crowded) viewerTime(t *testing.T) {
	const viewers, turn = 50, 10 * time.Second
	spent := func() float64 {
		before := processorTime(t, c.pid())
		<-time.After(turn)
		return (processorTime(t, c.pid()) - before).Seconds() / turn.Seconds() / float64(runtime.NumCPU())
	}
	wide := newParallelClient(t)
	alone := spent()
	ctx, stop := context.WithCancel(t.Context())
	var views atomic.Int64
	var all sync.WaitGroup
	for range viewers {
		all.Go(func() { c.view(ctx, wide, &views) })
	}
	watched := spent()
	stop()
	all.Wait()
	t.Logf("%.2f %% of the processors alone, %.2f %% with %d viewers, who loaded %d pages", 100*alone, 100*watched, viewers, views.Load())
	if views.Load() < 3*viewers || watched-alone > viewerCost {
		t.Errorf("%d viewers cost %.1f %% of the processors, for %d pages", viewers, 100*(watched-alone), views.Load())
	}
}

// processorTime returns the processor time of a process.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // user and system, in hundredths of a second: proc(5)
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// viewers compares the calls per second with 50 open pages and without, in turn. Each turn is
// compared with the mean of the previous and the next one, because calls become slower the more of
// them are recorded. Like its script, a page follows the event stream and reloads with each event.
func (c *crowded) viewers(t *testing.T) {
	const (
		viewers, turns = 50, 6
		turn           = 2 * time.Second
	)
	wide := newParallelClient(t)
	l := startLoad(t, 16, func(_, _ int) error {
		a, err := send(wide, c.url, "POST", toolPath(calculator, "evaluate"), `{"expression":"1+1"}`)
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		return err
	})
	rate := func() float64 {
		<-time.After(turn / 4) // the effect of the previous turn fades
		before, began := l.calls.Load(), time.Now()
		<-time.After(turn)
		return float64(l.calls.Load()-before) / time.Since(began).Seconds()
	}
	var ratios []float64
	before := rate()
	for range turns {
		ctx, stop := context.WithCancel(t.Context())
		var views atomic.Int64
		var all sync.WaitGroup
		for range viewers {
			all.Go(func() { c.view(ctx, wide, &views) })
		}
		watched := rate()
		stop()
		all.Wait()
		if views.Load() < viewers/2 {
			t.Errorf("the pages were loaded %d times only", views.Load())
		}
		after := rate()
		alone := (before + after) / 2
		before = after
		ratios = append(ratios, watched/alone)
		t.Logf("%.0f calls a second alone, %.0f with %d viewers, who loaded %d pages", alone, watched, viewers, views.Load())
	}
	l.end()
	l.none(t, "the calls")
	slices.Sort(ratios)
	median := (ratios[turns/2-1] + ratios[turns/2]) / 2
	t.Logf("viewers: the median of %d ratios is %.3f, from %.3f to %.3f", turns, median, ratios[0], ratios[turns-1])
	if median < 1-viewerCost {
		t.Errorf("%d viewers cost %.1f %% of the calls", viewers, 100*(1-median))
	}
}

// view keeps the first page open until ctx ends.
func (c *crowded) view(ctx context.Context, client *http.Client, views *atomic.Int64) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.pages+"/console/events", nil)
	if err != nil {
		return
	}
	res, err := client.Do(r)
	if err != nil {
		return
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if lines.Text() != "event: changed" {
			continue
		}
		if a, err := send(client, c.pages, "GET", "/console", "", "Accept: text/html"); err == nil && a.status == http.StatusOK {
			views.Add(1)
		}
	}
}
